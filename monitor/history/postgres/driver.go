package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// connector makes connections that encode texts, and take ? and ?1 for parameters as SQLite does, so that statements can be shared.
type connector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := made.(*stdlib.Conn)
	if !ok {
		return nil, fmt.Errorf("connection is a %T", made)
	}
	return &conn{inner}, nil
}

// conn is a connection.
type conn struct{ *stdlib.Conn }

// CheckNamedValue encodes an argument.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	switch x := v.Value.(type) {
	case string:
		v.Value = encodeText(x)
		return nil
	case *string:
		if x == nil {
			v.Value = nil
		} else {
			v.Value = encodeText(*x)
		}
		return nil
	case []string:
		v.Value = encodeTexts(x)
		return nil
	}
	if x, ok := v.Value.(driver.Valuer); ok {
		value, err := x.Value()
		if text, is := value.(string); is {
			value = encodeText(text)
		}
		v.Value = value
		return err
	}
	return c.Conn.CheckNamedValue(v)
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.ExecContext(ctx, numbered(query, len(args)), args)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	found, err := c.Conn.QueryContext(ctx, numbered(query, len(args)), args)
	if err != nil {
		return nil, err
	}
	return &rows{found}, nil
}

// rows decodes texts. It does not embed driver.Rows: what that may implement beside would pass texts by.
type rows struct{ inner driver.Rows }

// Columns implements driver.Rows.
func (r *rows) Columns() []string { return r.inner.Columns() }

// Close implements driver.Rows.
func (r *rows) Close() error { return r.inner.Close() }

// Next implements driver.Rows.
func (r *rows) Next(dest []driver.Value) error {
	if err := r.inner.Next(dest); err != nil {
		return err
	}
	for i, v := range dest {
		if text, ok := v.(string); ok {
			dest[i] = decodeText(text)
		}
	}
	return nil
}

// numbered returns a statement with $1 for the first ?, and so on, and for each ?1.
func numbered(query string, args int) string {
	if args == 0 || strings.IndexByte(query, '?') < 0 {
		return query
	}
	var b strings.Builder
	n := 0
	for i := 0; i < len(query); i++ {
		if query[i] != '?' {
			b.WriteByte(query[i])
			continue
		}
		b.WriteByte('$')
		if i+1 < len(query) && query[i+1] >= '1' && query[i+1] <= '9' {
			continue // its number follows
		}
		n++
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// raw calls f with the connection of pgx.
func raw(driverConn any, f func(c *pgx.Conn) error) error {
	c, ok := driverConn.(*conn)
	if !ok {
		return fmt.Errorf("connection is a %T", driverConn)
	}
	return f(c.Conn.Conn())
}
