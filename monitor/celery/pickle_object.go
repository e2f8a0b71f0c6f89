package celery

import (
	"encoding/json"
)

// DescribePickle reads a pickle like Unpickle, and describes objects: dates and times, decimals and UUIDs as text,
// sets and ordered dicts by their elements, all else as a JSON object with the key __class__ (module.Name) and, if
// present, args, state and items. The result is for people and cannot be passed to a task. Nothing is executed or
// imported.
func DescribePickle(b []byte) (json.RawMessage, error) { return unpickle(b, true) }

// pickleClass is the name of a class or function, pickleObject what one makes of arguments.
type (
	pickleClass  struct{ module, name string }
	pickleObject struct {
		class   pickleClass
		args    []any
		state   any
		items   pickleList
		pairs   pickleDict
		writing bool // it is within itself
	}
)

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

func (c pickleClass) String() string {
	if c.module == "" || c.module == "builtins" {
		return c.name
	}
	return c.module + "." + c.name
}

// objects executes opcodes that make objects.
func (u *unpickler) objects(op byte) (bool, error) {
	if !u.describe {
		return false, nil
	}
	switch op {
	case 'c', 'i': // GLOBAL, INST
		return true, u.global(op)
	case 0x93: // STACK_GLOBAL
		names, err := u.top(2)
		if err != nil {
			return true, err
		}
		module, ok := names[0].(string)
		name, too := names[1].(string)
		if !ok || !too {
			return true, errPickle
		}
		u.push(class(module, name))
	case 'R', 0x81: // REDUCE, NEWOBJ
		parts, err := u.top(2)
		if err != nil {
			return true, err
		}
		return true, u.make(parts[0], parts[1])
	case 0x92: // NEWOBJ_EX
		parts, err := u.top(3)
		if err != nil {
			return true, err
		}
		return true, u.make(parts[0], parts[1])
	case 'o': // OBJ
		items, err := u.sinceMark()
		if err != nil || len(items) == 0 {
			return true, errPickle
		}
		return true, u.make(items[0], &pickleList{items[1:]})
	case 'b': // BUILD
		return true, u.build()
	default:
		return false, nil
	}
	return true, nil
}

// global pushes a class, or what it makes of what is above the mark.
func (u *unpickler) global(op byte) error {
	module, err := u.line()
	if err != nil {
		return err
	}
	name, err := u.line()
	if err != nil {
		return err
	}
	c := class(module, name)
	if op == 'c' {
		u.push(c)
		return nil
	}
	items, err := u.sinceMark()
	if err != nil {
		return err
	}
	return u.make(c, &pickleList{items})
}

// make pushes the result of calling a class with arguments.
func (u *unpickler) make(maker, arguments any) error {
	c, ok := maker.(pickleClass)
	args, too := arguments.(*pickleList)
	if !ok || !too {
		return ErrPythonObject
	}
	switch c {
	case pickleClass{"_codecs", "encode"}: // bytes, up to protocol 2
		if len(args.items) > 0 {
			if text, ok := args.items[0].(string); ok {
				u.push(latin1(text))
				return nil
			}
		}
	case pickleClass{"copyreg", "_reconstructor"}: // any object, up to protocol 1
		if len(args.items) > 0 {
			if of, ok := args.items[0].(pickleClass); ok {
				u.push(&pickleObject{class: of})
				return nil
			}
		}
	}
	u.push(&pickleObject{class: c, args: args.items})
	return nil
}

// latin1 are the bytes that text is made of.
func latin1(text string) []byte {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		b = append(b, byte(r))
	}
	return b
}

// build gives the object on top of the stack its state.
func (u *unpickler) build() error {
	state, err := u.pop()
	if err != nil || len(u.stack) == 0 {
		return errPickle
	}
	o, ok := u.stack[len(u.stack)-1].(*pickleObject)
	if !ok {
		return ErrPythonObject
	}
	o.state = state
	return nil
}
