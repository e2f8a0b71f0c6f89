package flower

// healthcheck answers while the process runs.
func healthcheck(*request) (any, error) { return text("OK"), nil }
