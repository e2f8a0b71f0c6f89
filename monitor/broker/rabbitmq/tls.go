package rabbitmq

import "github.com/umbelhq/umbel/monitor/broker"

// TLS says how a connection is secured. The zero value trusts the system's authorities.
type TLS = broker.TLS
