package celery

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDecimal is how many characters an integer in digits may have: about as many as Python itself reads.
const maxDecimal = 5000

// scalar executes opcodes that push numbers, booleans and None, and those that do nothing. It returns false for other
// opcodes, as the methods below do.
func (u *unpickler) scalar(op byte) bool {
	switch op {
	case 0x80: // PROTO
		u.take(1)
	case 0x95: // FRAME
		u.take(8)
	case 'N':
		u.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		u.push(op == 0x88)
	case 'K': // BININT1
		u.push(int64(u.unsigned(1)))
	case 'M': // BININT2
		u.push(int64(u.unsigned(2)))
	case 'J': // BININT
		u.push(int64(int32(u.unsigned(4))))
	case 0x8a: // LONG1
		u.push(long(u.counted(1)))
	case 0x8b: // LONG4
		u.push(long(u.counted(4)))
	case 'G': // BINFLOAT
		u.push(math.Float64frombits(bits.ReverseBytes64(u.unsigned(8))))
	case 'F': // FLOAT
		f, err := strconv.ParseFloat(u.line(), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			u.fail(errPickle)
		}
		u.push(f)
	case 'I', 'L': // INT, LONG
		u.integer(op, u.line())
	default:
		return false
	}
	return true
}

// integer pushes an integer in digits. Protocol 0 writes booleans as INT, with a zero before them.
func (u *unpickler) integer(op byte, line string) {
	if op == 'I' && (line == "00" || line == "01") {
		u.push(line == "01")
		return
	}
	n, ok := new(big.Int), len(line) <= maxDecimal
	if ok {
		_, ok = n.SetString(strings.TrimSuffix(line, "L"), 10)
	}
	if !ok {
		u.fail(errPickle)
	}
	u.push(n)
}

// text executes opcodes that push text and bytes.
func (u *unpickler) text(op byte) bool {
	switch op {
	case 'T': // BINSTRING
		u.pushText2(u.counted(4))
	case 'U': // SHORT_BINSTRING
		u.pushText2(u.counted(1))
	case 'X': // BINUNICODE
		u.pushText(u.counted(4))
	case 0x8c: // SHORT_BINUNICODE
		u.pushText(u.counted(1))
	case 0x8d: // BINUNICODE8
		u.pushText(u.counted(8))
	case 'C': // SHORT_BINBYTES
		u.push(u.counted(1))
	case 'B': // BINBYTES
		u.push(u.counted(4))
	case 0x8e, 0x96: // BINBYTES8, BYTEARRAY8
		u.push(u.counted(8))
	case 'V': // UNICODE
		u.push(unescape(u.line(), false))
	case 'S': // STRING
		line := u.line()
		if len(line) < 2 || line[0] != line[len(line)-1] || line[0] != '\'' && line[0] != '"' {
			u.fail(errPickle)
			return true
		}
		u.push(unescape(line[1:len(line)-1], true))
	default:
		return false
	}
	return true
}

// pushText pushes text, which may contain lone surrogates.
func (u *unpickler) pushText(b []byte) { u.push(strings.ToValidUTF8(string(b), "\uFFFD")) }

// pushText2 pushes a str of Python 2: text, or bytes.
func (u *unpickler) pushText2(b []byte) {
	if utf8.Valid(b) {
		u.push(string(b))
	} else {
		u.push(b)
	}
}

// collect executes opcodes that make and fill collections.
func (u *unpickler) collect(op byte) bool {
	switch op {
	case '(': // MARK
		u.push(pickleMark{})
	case ')', ']', 0x8f: // EMPTY_TUPLE, EMPTY_LIST, EMPTY_SET
		u.push(&pickleList{})
	case '}': // EMPTY_DICT
		u.push(&pickleDict{})
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		u.push(&pickleList{slices.Clone(u.top(int(op - 0x84)))})
	case 't', 'l', 0x91: // TUPLE, LIST, FROZENSET
		u.push(&pickleList{u.sinceMark()})
	case 'd': // DICT
		items := u.sinceMark()
		u.push(&pickleDict{})
		u.setItems(items)
	case 'a': // APPEND
		u.appendItems(u.top(1))
	case 'e', 0x90: // APPENDS, ADDITEMS
		u.appendItems(u.sinceMark())
	case 's': // SETITEM
		u.setItems(u.top(2))
	case 'u': // SETITEMS
		u.setItems(u.sinceMark())
	default:
		return false
	}
	return true
}

// appendItems adds to the list on top of the stack, or to an object of a class that is one.
func (u *unpickler) appendItems(items []any) {
	switch into := u.last().(type) {
	case *pickleList:
		into.items = append(into.items, items...)
	case *pickleObject:
		into.items.items = append(into.items.items, items...)
	default:
		u.fail(errPickle)
	}
}

// setItems adds keys and values to the dict on top of the stack, or to an object of a class that is one.
func (u *unpickler) setItems(items []any) {
	var d *pickleDict
	switch into := u.last().(type) {
	case *pickleDict:
		d = into
	case *pickleObject:
		d = &into.pairs
	}
	if d == nil || len(items)%2 != 0 {
		u.fail(errPickle)
		return
	}
	for i := 0; i < len(items); i += 2 {
		d.keys, d.values = append(d.keys, items[i]), append(d.values, items[i+1])
	}
}

// remember executes opcodes of the memo and of the stack itself.
func (u *unpickler) remember(op byte) bool {
	switch op {
	case 'p': // PUT
		u.memo[u.key()] = u.last()
	case 'q': // BINPUT
		u.memo[int(u.unsigned(1))] = u.last()
	case 'r': // LONG_BINPUT
		u.memo[int(u.unsigned(4))] = u.last()
	case 0x94: // MEMOIZE
		u.memo[len(u.memo)] = u.last()
	case 'g': // GET
		u.recall(u.key())
	case 'h': // BINGET
		u.recall(int(u.unsigned(1)))
	case 'j': // LONG_BINGET
		u.recall(int(u.unsigned(4)))
	case '0': // POP
		u.pop()
	case '1': // POP_MARK
		u.sinceMark()
	case '2': // DUP
		u.push(u.last())
	default:
		return false
	}
	return true
}

// key reads a key of the memo in digits.
func (u *unpickler) key() int {
	key, err := strconv.Atoi(u.line())
	if err != nil {
		u.fail(errPickle)
	}
	return key
}

// recall pushes a value of the memo.
func (u *unpickler) recall(key int) {
	v, ok := u.memo[key]
	if !ok {
		u.fail(errPickle)
	}
	u.push(v)
}

// object executes opcodes that make objects.
func (u *unpickler) object(op byte) bool {
	switch op {
	case 'c': // GLOBAL
		u.push(class(u.line(), u.line()))
	case 0x93: // STACK_GLOBAL
		names := u.top(2)
		module, ok := names[0].(string)
		name, too := names[1].(string)
		if !ok || !too {
			u.fail(errPickle)
		}
		u.push(class(module, name))
	case 'i': // INST
		c := class(u.line(), u.line())
		u.make(c, &pickleList{u.sinceMark()})
	case 'o': // OBJ
		items := u.sinceMark()
		if len(items) == 0 {
			u.fail(errPickle)
			return true
		}
		u.make(items[0], &pickleList{items[1:]})
	case 'R', 0x81: // REDUCE, NEWOBJ
		parts := u.top(2)
		u.make(parts[0], parts[1])
	case 0x92: // NEWOBJ_EX
		parts := u.top(3)
		u.make(parts[0], parts[1])
	case 'b': // BUILD
		state := u.pop()
		if o, ok := u.last().(*pickleObject); ok {
			o.state = state
		} else {
			u.fail(ErrPythonObject)
		}
	default:
		return false
	}
	return true
}

// class names a class as Python 3 does.
func class(module, name string) pickleClass {
	switch module {
	case "__builtin__", "exceptions":
		module = "builtins"
	case "copy_reg":
		module = "copyreg"
	}
	return pickleClass{module, name}
}

// make pushes the result of calling a class with arguments.
func (u *unpickler) make(maker, arguments any) {
	c, ok := maker.(pickleClass)
	args, too := arguments.(*pickleList)
	if !ok || !too {
		u.fail(ErrPythonObject)
		return
	}
	var first any
	if len(args.items) > 0 {
		first = args.items[0]
	}
	switch c {
	case pickleClass{"_codecs", "encode"}: // bytes, up to protocol 2
		if text, ok := first.(string); ok {
			u.push(latin1(text))
			return
		}
	case pickleClass{"copyreg", "_reconstructor"}: // any object, up to protocol 1
		if of, ok := first.(pickleClass); ok {
			u.push(&pickleObject{class: of})
			return
		}
	}
	u.push(&pickleObject{class: c, args: args.items})
}

// latin1 are the bytes that text is made of.
func latin1(text string) []byte {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		b = append(b, byte(r))
	}
	return b
}

// long reads an integer in two's complement, least significant byte first.
func long(b []byte) *big.Int {
	reversed := slices.Clone(b)
	slices.Reverse(reversed)
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
