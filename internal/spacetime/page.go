package spacetime

const source = `{{define "svg"}}<svg width="{{.Width}}" height="{{.Height}}" viewBox="0 0 {{.Width}} {{.Height}}" role="img" aria-label="{{.Title}}: {{len .Lanes}} lanes, {{len .Dots}} events, {{len .Lines}} arrows. The table below has the same.">
<defs>{{range $i, $_ := .Kinds}}<marker id="head{{$i}}" class="head k{{$i}}" viewBox="0 0 8 8" refX="11" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>{{end}}</defs>
{{range .Lanes}}<line class="lane" x1="0" y1="{{.Y}}" x2="{{$.Width}}" y2="{{.Y}}"/>
{{end}}{{range .Bars}}<rect class="bar" x="{{.X}}" y="{{.Y}}" width="{{.Width}}" height="10" rx="3"><title>{{.Text}}</title></rect>
{{end}}{{range .Lines}}<line class="arrow k{{.Kind}}" x1="{{.X1}}" y1="{{.Y1}}" x2="{{.X2}}" y2="{{.Y2}}"{{if ge .Kind 0}} marker-end="url(#head{{.Kind}})"{{end}}><title>{{.Text}}</title></line>
{{end}}{{range .Dots}}<circle class="{{if .Alert}}dot alert{{else}}dot{{end}}" cx="{{.X}}" cy="{{.Y}}" r="{{if .Alert}}7{{else}}4{{end}}"><title>{{.Text}}</title></circle><text x="{{.X}}" y="{{.MarkY}}">{{.Mark}}</text>
{{end}}</svg>{{end}}

{{define "document"}}<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark; --text: light-dark(#1a211c, #e2e8e0); --quiet: light-dark(#586259, #98a497); --page: light-dark(#f6f7f3, #0e120f);
  --card: light-dark(#fff, #151a16); --border: light-dark(#c3ccbd, #3a463b); --bar: light-dark(#9fd0a8, #2f6b3c); --alert: light-dark(#bf2b2b, #ff8f85); }
body { margin: 0; padding: 1.5rem 1rem; font: .875rem/1.45 system-ui, sans-serif; color: var(--text); background: var(--page); font-variant-numeric: tabular-nums; }
main { max-width: 90rem; margin: 0 auto; }
h1 { font-size: 1.375rem; margin: 0 0 .5rem; } h2 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p { margin: .25rem 0; max-width: 50rem; }
.panel { display: flex; margin-top: 1rem; background: var(--card); border: 1px solid var(--border); border-radius: .6rem; }
.names { flex: none; margin: 0; padding: 0 .75rem; list-style: none; border-inline-end: 1px solid var(--border); }
.names li { height: 48px; line-height: 48px; } .names li:first-child { margin-top: 4px; }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 2px solid var(--text); }
svg { display: block; } svg text { font-size: 10px; text-anchor: middle; fill: var(--quiet); }
.lane { stroke: var(--border); } .bar { fill: var(--bar); } .dot { fill: var(--text); } .alert { fill: var(--alert); }
.arrow { stroke-width: 1.2; stroke: var(--quiet); }
.k0 { stroke: light-dark(#1c62bd, #86b6ff); fill: light-dark(#1c62bd, #86b6ff); }
.k1 { stroke: light-dark(#626b62, #98a497); fill: light-dark(#626b62, #98a497); } .arrow.k1 { stroke-dasharray: 3 3; }
.k2 { stroke: light-dark(#1b7438, #74cb85); fill: light-dark(#1b7438, #74cb85); } .arrow.k2 { stroke-dasharray: 8 3; }
.k3 { stroke: light-dark(#7547ad, #c3a6f0); fill: light-dark(#7547ad, #c3a6f0); } .arrow.k3 { stroke-dasharray: 1 3; }
.head { stroke: none; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: .75rem 0 0; padding: 0; list-style: none; }
.legend svg { display: inline-block; vertical-align: middle; margin-inline-end: .4rem; }
table { border-collapse: collapse; width: 100%; background: var(--card); } caption { text-align: start; color: var(--quiet); }
th, td { text-align: start; vertical-align: top; padding: .3rem .6rem; border: 1px solid var(--border); } tr.wrong td { color: var(--alert); }
</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
{{range .Notes}}<p>{{.}}</p>
{{end}}{{if .Omitted}}<p>Only the first {{len .Dots}} events are drawn; {{.Omitted}} more followed.</p>
{{end}}<ul class="legend" aria-label="Legend">
{{range $i, $kind := .Kinds}}<li><svg width="34" height="8" aria-hidden="true"><line class="arrow k{{$i}}" x1="0" y1="4" x2="34" y2="4"/></svg>{{$kind}}</li>
{{end}}</ul>
<div class="panel">
<ul class="names" aria-label="Lanes">{{range .Lanes}}<li>{{.Name}}</li>{{end}}</ul>
<div class="scroll" role="region" aria-label="Drawing" tabindex="0">{{template "svg" .}}</div>
</div>
<h2>As a table</h2>
<div class="scroll" role="region" aria-label="Table" tabindex="0">
<table>
<thead><tr><th scope="col">Event</th><th scope="col">Lane</th><th scope="col">Clock</th><th scope="col">What</th><th scope="col">Received</th><th scope="col">Sent</th><th scope="col">Interval</th></tr></thead>
<tbody>
{{range .Rows}}<tr{{if .Alert}} class="wrong"{{end}}><th scope="row">{{.Number}}</th><td>{{.Lane}}</td><td>{{.Mark}}</td><td>{{.Text}}</td><td>{{join .Received}}</td><td>{{join .Sent}}</td><td>{{.Interval}}</td></tr>
{{end}}</tbody>
</table>
</div>
</main>
</body>
</html>
{{end}}`
