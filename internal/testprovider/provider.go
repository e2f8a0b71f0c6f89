// Package testprovider has a provider at which tests sign in.
package testprovider

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Provider is an OpenID Connect provider, and a GitHub, at which ann@example.com of the group ops always signs in. Its client is
// umbel with the secret "client secret".
type Provider struct {
	Claims  map[string]any            // of the ID token, over those that are right
	Header  map[string]any            // of the ID token, over those that are right
	Info    map[string]any            // of userinfo
	API     map[string]any            // answers of the APIs of GitHub and GitLab, by path
	Answer  func(redirect url.Values) // changes what the browser comes back with, unless nil
	Refused string                    // why a code was not exchanged
	Down    bool

	tb     testing.TB
	server *httptest.Server
	key    *rsa.PrivateKey
	now    func() time.Time

	mu    sync.Mutex
	asked map[string]url.Values // what browsers came with, by the code that they got
}

// Keys take long to make.
//
//nolint:gochecknoglobals // constants
var (
	ownKey       = sync.OnceValue(newKey)
	strangersKey = sync.OnceValue(newKey)
)

func newKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// New starts a provider that ends with the test. The clock is that of its tokens.
func New(tb testing.TB, now func() time.Time) *Provider {
	tb.Helper()
	p := &Provider{tb: tb, key: ownKey(), now: now, asked: map[string]url.Values{}}
	m := http.NewServeMux()
	m.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	m.HandleFunc("GET /keys", p.keys)
	m.HandleFunc("GET /authorize", p.authorize)
	m.HandleFunc("GET /login/oauth/authorize", p.authorize)
	m.HandleFunc("POST /token", p.token)
	m.HandleFunc("POST /login/oauth/access_token", p.token)
	m.HandleFunc("GET /userinfo", func(w http.ResponseWriter, r *http.Request) { p.bearer(w, r, p.Info) })
	m.HandleFunc("GET /api/", p.api)
	p.server = httptest.NewServer(m)
	tb.Cleanup(p.server.Close)
	return p
}

// URL is the issuer.
func (p *Provider) URL() string { return p.server.URL }

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	if p.Down {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}
	base := p.server.URL
	p.json(w, map[string]any{
		"issuer": base, "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/token", "jwks_uri": base + "/keys",
		"userinfo_endpoint": base + "/userinfo", "id_token_signing_alg_values_supported": []string{"RS256", "none", "HS256"},
	})
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.json(w, map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes()),
	}}})
}

// authorize sends the browser back with a code.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	code := rand.Text()
	p.mu.Lock()
	p.asked[code] = q
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if p.Answer != nil {
		p.Answer(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound) //nolint:gosec // as the test asks
}

// token exchanges a code, once, for those who have the verifier and the secret.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	asked, ok := p.asked[r.FormValue("code")]
	delete(p.asked, r.FormValue("code"))
	p.mu.Unlock()
	user, secret, basic := r.BasicAuth()
	if basic { // RFC 6749 §2.3.1
		user, _ = url.QueryUnescape(user)
		secret, _ = url.QueryUnescape(secret)
	} else {
		user, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case !ok:
		p.Refused = "the code is unknown"
	case user != "umbel" || secret != "client secret":
		p.Refused = "the client is unknown"
	case asked.Get("code_challenge_method") != "S256" || encode(sum[:]) != asked.Get("code_challenge"):
		p.Refused = "the verifier is wrong"
	case r.FormValue("redirect_uri") != asked.Get("redirect_uri"):
		p.Refused = "the redirect URI is wrong"
	default:
		p.json(w, map[string]any{"access_token": "access", "token_type": "Bearer", "id_token": p.idToken(asked.Get("nonce"))})
		return
	}
	w.WriteHeader(http.StatusBadRequest)
	p.json(w, map[string]any{"error": "invalid_grant"})
}

// idToken signs claims.
func (p *Provider) idToken(nonce string) string {
	claims := map[string]any{
		"iss": p.server.URL, "aud": "umbel", "sub": "1", "nonce": nonce, "iat": p.now().Unix(), "exp": p.now().Add(time.Hour).Unix(),
		"email": "ann@example.com", "email_verified": true, "groups": []string{"ops"},
	}
	header := map[string]any{"alg": "RS256", "kid": "1", "typ": "JWT"}
	for k, v := range p.Claims {
		claims[k] = v
		if v == nil {
			delete(claims, k)
		}
	}
	maps.Copy(header, p.Header)
	text := encode(p.encoded(header)) + "." + encode(p.encoded(claims))
	if header["alg"] == "none" {
		return text + "."
	}
	sum := sha256.Sum256([]byte(text))
	key := p.key
	if header["kid"] == "stranger" {
		key = strangersKey()
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		p.tb.Error(err)
	}
	return text + "." + encode(signature)
}

func (p *Provider) api(w http.ResponseWriter, r *http.Request) {
	address := strings.TrimPrefix(r.URL.Path, "/api/v3")
	if r.URL.Query().Has("page") {
		address += "?page=" + r.URL.Query().Get("page") + "&level=" + r.URL.Query().Get("min_access_level")
		if _, more := p.API[fmt.Sprintf("%s?page=2&level=%s", r.URL.Path, r.URL.Query().Get("min_access_level"))]; more && r.URL.Query().Get("page") == "1" {
			w.Header().Set("X-Next-Page", "2")
		}
	}
	answer, ok := p.API[address]
	if !ok {
		http.NotFound(w, r)
		return
	}
	p.bearer(w, r, answer)
}

func (p *Provider) bearer(w http.ResponseWriter, r *http.Request, v any) {
	if r.Header.Get("Authorization") != "Bearer access" {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	p.json(w, v)
}

func (p *Provider) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(p.encoded(v))
}

func (p *Provider) encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		p.tb.Error(err)
	}
	return text
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
