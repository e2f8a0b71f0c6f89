package celery

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scalar executes opcodes that push numbers, booleans and None, and those that do nothing.
func (u *unpickler) scalar(op byte) (bool, error) {
	switch op {
	case 0x80: // PROTO
		_, err := u.take(1)
		return true, err
	case 0x95: // FRAME
		_, err := u.take(8)
		return true, err
	case 'N':
		u.push(nil)
	case 0x88, 0x89:
		u.push(op == 0x88)
	case 'K', 'M', 'J':
		size := map[byte]int{'K': 1, 'M': 2, 'J': 4}[op]
		b, err := u.take(size)
		if err != nil {
			return true, err
		}
		n := int64(little(b))
		if op == 'J' {
			n = int64(int32(n))
		}
		u.push(n)
	case 0x8a, 0x8b: // LONG1, LONG4
		b, err := u.counted(map[byte]int{0x8a: 1, 0x8b: 4}[op])
		if err != nil {
			return true, err
		}
		u.push(long(b))
	case 'G':
		b, err := u.take(8)
		if err != nil {
			return true, err
		}
		u.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 'I', 'L', 'F':
		line, err := u.line()
		if err != nil {
			return true, err
		}
		return true, u.number(op, line)
	default:
		return false, nil
	}
	return true, nil
}

// number pushes what protocol 0 wrote in digits.
func (u *unpickler) number(op byte, line string) error {
	if op == 'F' {
		f, err := strconv.ParseFloat(line, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return errPickle
		}
		u.push(f)
		return nil
	}
	if op == 'I' && (line == "00" || line == "01") {
		u.push(line == "01")
		return nil
	}
	n, ok := new(big.Int).SetString(strings.TrimSuffix(line, "L"), 10)
	if !ok || len(line) > 5000 { // as many digits as Python itself reads
		return errPickle
	}
	u.push(n)
	return nil
}

// text executes opcodes that push text and bytes.
func (u *unpickler) text(op byte) (bool, error) {
	if size, ok := map[byte]int{'T': 4, 'U': 1, 0x8c: 1, 'X': 4, 0x8d: 8}[op]; ok {
		b, err := u.counted(size)
		if err != nil {
			return true, err
		}
		switch {
		case utf8.Valid(b):
			u.push(string(b))
		case op == 'T' || op == 'U': // Python 2's str
			u.push(b)
		default: // lone surrogates
			u.push(strings.ToValidUTF8(string(b), "\uFFFD"))
		}
		return true, nil
	}
	if size, ok := map[byte]int{'B': 4, 'C': 1, 0x8e: 8, 0x96: 8}[op]; ok {
		b, err := u.counted(size)
		if err == nil {
			u.push(b)
		}
		return true, err
	}
	if op != 'S' && op != 'V' {
		return false, nil
	}
	line, err := u.line()
	if err != nil {
		return true, err
	}
	if op == 'S' {
		if len(line) < 2 || line[0] != line[len(line)-1] || !strings.ContainsRune(`'"`, rune(line[0])) {
			return true, errPickle
		}
		line = line[1 : len(line)-1]
	}
	u.push(unescape(line, op == 'S'))
	return true, nil
}

// collect executes opcodes that make and fill collections.
func (u *unpickler) collect(op byte) (bool, error) {
	switch op {
	case '(':
		u.push(pickleMark{})
	case ')', ']', 0x8f:
		u.push(&pickleList{})
	case '}':
		u.push(&pickleDict{})
	case 0x85, 0x86, 0x87:
		n := int(op - 0x84)
		if len(u.stack) < n {
			return true, errPickle
		}
		items := append([]any(nil), u.stack[len(u.stack)-n:]...)
		u.stack = u.stack[:len(u.stack)-n]
		u.push(&pickleList{items})
	case 't', 'l', 0x91:
		items, err := u.sinceMark()
		if err != nil {
			return true, err
		}
		u.push(&pickleList{items})
	case 'd':
		items, err := u.sinceMark()
		if err != nil {
			return true, err
		}
		d := &pickleDict{}
		u.push(d)
		return true, d.set(items)
	case 'a', 's', 'e', 'u', 0x90:
		return true, u.fill(op)
	default:
		return false, nil
	}
	return true, nil
}

// fill adds what is on top of the stack to the collection below it.
func (u *unpickler) fill(op byte) error {
	var items []any
	var err error
	switch op {
	case 'a':
		items, err = u.top(1)
	case 's':
		items, err = u.top(2)
	default:
		items, err = u.sinceMark()
	}
	if err != nil || len(u.stack) == 0 {
		return errPickle
	}
	switch into := u.stack[len(u.stack)-1].(type) {
	case *pickleList:
		if op == 's' || op == 'u' {
			return errPickle
		}
		into.items = append(into.items, items...)
		return nil
	case *pickleDict:
		if op != 's' && op != 'u' {
			return errPickle
		}
		return into.set(items)
	case *pickleObject: // of a class that is a list or a dict
		if op == 's' || op == 'u' {
			return into.pairs.set(items)
		}
		into.items.items = append(into.items.items, items...)
		return nil
	default:
		return errPickle
	}
}

func (d *pickleDict) set(items []any) error {
	if len(items)%2 != 0 {
		return errPickle
	}
	for i := 0; i < len(items); i += 2 {
		d.keys, d.values = append(d.keys, items[i]), append(d.values, items[i+1])
	}
	return nil
}

// remember executes opcodes of the memo and of the stack itself.
func (u *unpickler) remember(op byte) (bool, error) {
	put, get := map[byte]int{'q': 1, 'r': 4}, map[byte]int{'h': 1, 'j': 4}
	key, err := 0, error(nil)
	switch {
	case op == 'p' || op == 'g':
		var line string
		if line, err = u.line(); err == nil {
			key, err = strconv.Atoi(line)
		}
	case put[op]+get[op] > 0:
		var b []byte
		if b, err = u.take(put[op] + get[op]); err == nil {
			key = int(little(b))
		}
	case op == 0x94: // MEMOIZE
		key = len(u.memo)
	case op == '0':
		_, err := u.pop()
		return true, err
	case op == '1':
		_, err := u.sinceMark()
		return true, err
	case op != '2':
		return false, nil
	}
	if err != nil {
		return true, errPickle
	}
	if op == 'g' || get[op] > 0 {
		v, ok := u.memo[key]
		if !ok {
			return true, errPickle
		}
		u.push(v)
		return true, nil
	}
	if len(u.stack) == 0 {
		return true, errPickle
	}
	if last := u.stack[len(u.stack)-1]; op == '2' { // DUP
		u.push(last)
	} else {
		u.memo[key] = last
	}
	return true, nil
}

// little reads a number of up to eight bytes, least significant first.
func little(b []byte) uint64 {
	var all [8]byte
	copy(all[:], b)
	return binary.LittleEndian.Uint64(all[:])
}

// long reads an integer in two's complement, least significant byte first.
func long(b []byte) *big.Int {
	reversed := make([]byte, len(b))
	for i, c := range b {
		reversed[len(b)-1-i] = c
	}
	n := new(big.Int).SetBytes(reversed)
	if len(b) > 0 && b[len(b)-1]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// unescape reads the escapes of Python's raw-unicode-escape, and with all those of its other texts.
func unescape(s string, all bool) string {
	if !strings.Contains(s, `\`) && utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out.WriteRune(rune(s[i])) // Latin-1
			continue
		}
		i++
		if digits := map[byte]int{'u': 4, 'U': 8, 'x': 2}[s[i]]; digits > 0 && (all || s[i] != 'x') && i+digits < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32); err == nil {
				out.WriteRune(rune(n))
				i += digits
				continue
			}
		}
		plain, ok := map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '\\': '\\', '\'': '\'', '"': '"'}[s[i]]
		if !all || !ok {
			out.WriteByte('\\')
			plain = s[i]
		}
		out.WriteRune(rune(plain))
	}
	return out.String()
}
