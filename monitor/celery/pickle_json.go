package celery

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
)

// pickleWriter writes values as JSON.
type pickleWriter struct{ out bytes.Buffer }

func (w *pickleWriter) value(v any, depth int) error {
	if depth > maxPickleDepth || w.out.Len() > maxUnpickled {
		return errors.New("pickle unfolds to more than can be read")
	}
	switch v := v.(type) {
	case nil:
		w.out.WriteString("null")
	case bool:
		w.out.WriteString(strconv.FormatBool(v))
	case int64:
		w.out.WriteString(strconv.FormatInt(v, 10))
	case *big.Int:
		w.out.WriteString(v.String())
	case float64:
		w.float(v)
	case string:
		w.quote(v)
	case []byte:
		w.quote(base64.StdEncoding.EncodeToString(v))
	case *pickleList:
		return w.list(v, depth)
	case *pickleDict:
		return w.dict(v, depth)
	case pickleClass:
		w.quote(v.String())
	case *pickleObject:
		return w.object(v, depth)
	default:
		return errPickle
	}
	return nil
}

func (w *pickleWriter) float(f float64) {
	switch {
	case math.IsNaN(f):
		w.out.WriteString(`"nan"`)
	case math.IsInf(f, 1):
		w.out.WriteString(`"inf"`)
	case math.IsInf(f, -1):
		w.out.WriteString(`"-inf"`)
	default:
		b, _ := json.Marshal(f)
		w.out.Write(b)
	}
}

func (w *pickleWriter) quote(s string) {
	b, _ := json.Marshal(s)
	w.out.Write(b)
}

func (w *pickleWriter) list(l *pickleList, depth int) error {
	w.out.WriteByte('[')
	for i, v := range l.items {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := w.value(v, depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	return nil
}

func (w *pickleWriter) dict(d *pickleDict, depth int) error {
	w.out.WriteByte('{')
	for i, k := range d.keys {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if text, ok := k.(string); ok {
			w.quote(text)
		} else {
			var key pickleWriter
			if err := key.value(k, depth+1); err != nil {
				return err
			}
			w.quote(key.out.String())
		}
		w.out.WriteByte(':')
		if err := w.value(d.values[i], depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}
