package prometheus

import (
	"mime"
	"strconv"
	"strings"
)

// Format is how metrics are written.
type Format int

// Formats.
const (
	Text        Format = iota // version 0.0.4
	OpenMetrics               // 1.0.0, with exemplars
	Protobuf                  // delimited MetricFamily messages, with exemplars and native histograms
)

// Media types of the formats.
const (
	textType        = "text/plain"
	openMetricsType = "application/openmetrics-text"
	protobufType    = "application/vnd.google.protobuf"
)

// MediaTypes returns the media types of all formats, without parameters.
func MediaTypes() []string { return []string{textType, openMetricsType, protobufType} }

// Negotiate returns the format that the header Accept asks for, Text if it asks for none of them, and the content type of the
// answer. Text is plain text/plain unless a version is asked for: some scripts compare it.
func Negotiate(accept string) (f Format, contentType string) {
	best := 0.0
	contentType = textType
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		quality := 1.0
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			quality = q
		}
		if quality <= best {
			continue
		}
		version := params["version"]
		switch {
		case kind == protobufType && params["proto"] == "io.prometheus.client.MetricFamily" && params["encoding"] == "delimited":
			f, contentType = Protobuf, protobufType+"; proto=io.prometheus.client.MetricFamily; encoding=delimited"
		case kind == openMetricsType && (version == "" || version == "1.0.0" || version == "0.0.1"):
			f, contentType = OpenMetrics, openMetricsType+"; version=1.0.0; charset=utf-8"
		case kind == textType && version == "0.0.4":
			f, contentType = Text, textType+"; version=0.0.4; charset=utf-8"
		case kind == textType && version == "", kind == "text/*", kind == "*/*":
			f, contentType = Text, textType
		default:
			continue
		}
		best = quality
	}
	return f, contentType
}
