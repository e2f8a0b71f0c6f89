package amqp

import "github.com/umbelhq/umbel/monitor/transport"

// TLS says how a connection is secured. The zero value trusts the system's authorities.
type TLS = transport.TLS
