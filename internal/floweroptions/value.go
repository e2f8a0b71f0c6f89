package floweroptions

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parse reads the text of a value. Words for false are those of the command line or of the environment.
func (o Option) parse(text string) (any, error) {
	switch o.Kind {
	case Int:
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return nil, errors.New("must be a whole number")
		}
		return n, nil
	case Float:
		return parseFloat(text)
	case Bool:
		return parseBool(text)
	case Texts:
		return strings.Split(text, ","), nil
	case Floats:
		var list []float64
		for part := range strings.SplitSeq(text, ",") {
			f, err := parseFloat(part)
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		}
		return list, nil
	case Function:
		return nil, errors.New("is a function, which only flowerconfig.py can hold")
	case Text:
	}
	return text, nil
}

func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(f) {
		return 0, errors.New("must be a number")
	}
	return f, nil
}

// parseBool takes the words of Flower's command line and environment. Flower takes any other word, such as no, for true
// on its command line.
func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "y", "yes", "t", "true", "on", "1":
		return true, nil
	case "n", "no", "f", "false", "off", "0":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

// convert returns a value of a Python file as the option's kind wants it; nil for None.
func (o Option) convert(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	if text, ok := v.(string); ok && o.Kind != Text {
		return o.parse(text)
	}
	list, isList := v.([]any)
	switch o.Kind {
	case Text:
		if text, ok := v.(string); ok {
			return text, nil
		}
		return nil, errors.New("must be a string")
	case Int:
		if n, ok := v.(int64); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
			return int(n), nil
		}
		return nil, errors.New("must be a whole number")
	case Float:
		return number(v)
	case Bool:
		if b, ok := v.(bool); ok {
			return b, nil
		}
		return nil, errors.New("must be True or False")
	case Texts:
		texts := make([]string, len(list))
		for i, e := range list {
			texts[i], isList = e.(string)
			if !isList {
				break
			}
		}
		if !isList && len(list) > 0 || list == nil {
			return nil, errors.New("must be a list of strings")
		}
		return texts, nil
	case Floats:
		if !isList {
			return nil, errors.New("must be a list of numbers")
		}
		floats := make([]float64, len(list))
		for i, e := range list {
			f, err := number(e)
			if err != nil {
				return nil, errors.New("must be a list of numbers")
			}
			floats[i] = f
		}
		return floats, nil
	case Function:
	}
	return nil, fmt.Errorf("must be a function, not %v", v)
}

func number(v any) (float64, error) {
	switch n := v.(type) {
	case int64:
		return float64(n), nil
	case float64:
		return n, nil
	}
	return 0, errors.New("must be a number")
}
