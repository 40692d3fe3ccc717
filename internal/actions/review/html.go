package review

import (
	"html/template"
	"io"
)

// HTML writes the page as one file: no script, no link, no resource from
// elsewhere, and a policy that would refuse one. Every text of the contract is
// escaped by the template, after what a reader cannot see was made visible.
func (p Page) HTML(w io.Writer) error { return pageTemplate.Execute(w, p) }

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"v": visible, "inline": inline, "pairs": pairs, "ask": askWords, "retry": retryWords, "fixtures": fixtureWords,
	"row": rowWords, "code": codeWords, "quote": quote, "cases": caseWords,
	"step": func(i int, s Step, all []Step) string { return stepWords(i, len(all), s) },
	"dest": destinationWords, "identity": identityWords,
}).Parse(pageHTML))

const pageHTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{{v .Action}} {{v .Version}}</title>
<style>
:root { color-scheme: light dark; --line: #8886; --soft: #8882; --dim: #666 }
@media (prefers-color-scheme: dark) { :root { --dim: #aaa } }
* { box-sizing: border-box }
body { font: 16px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem }
h1 { font-size: 1.4rem; margin: 0 0 .25rem }
h2 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; border-bottom: 1px solid var(--line) }
p { margin: .25rem 0 }
ul { margin: .2rem 0; padding-left: 1.2rem }
code, .mono { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere }
.dim { color: var(--dim); overflow-wrap: anywhere }
.effect { border: 1px solid; border-radius: .3rem; padding: 0 .4rem; font-size: .8em }
.item { display: grid; grid-template-columns: 12rem 1fr; gap: .1rem .8rem; padding: .3rem 0; border-bottom: 1px solid var(--soft) }
.item > * { overflow-wrap: anywhere; min-width: 0 }
.item > .dim { grid-column: 2 }
@media (max-width: 36rem) { .item { grid-template-columns: 1fr } .item > .dim { grid-column: 1 } }
</style>
</head>
<body>
<h1>{{v .Action}} {{v .Version}} <span class="effect">{{v .Effect}}</span></h1>
<p>{{v .Summary}}</p>
<p class="dim">owner {{v .Owner}}<br><code>{{v .Digest}}</code></p>

<h2>An agent may vary</h2>
{{range .Inputs}}<div class="item"><code>{{v .Name}}{{if not .Required}}?{{end}}</code><span class="mono">{{v .Bound.Words}}</span>
<span class="dim">{{range $i, $p := .Goes}}{{if $i}}, {{end}}{{v $p.String}}{{else}}goes nowhere{{end}}</span></div>
{{else}}<p>nothing</p>{{end}}

<h2>It can end up at</h2>
{{if .RouteList}}<p>the names of the operator’s list <code>{{v .RouteList}}</code></p>{{end}}
<ul>{{range .Destinations}}<li>{{v (dest . $.SiteRead)}}<ul>{{with identity .}}<li class="mono">{{v .}}</li>{{end}}{{range .Cases}}{{with cases .}}<li class="mono">{{v .}}</li>{{end}}{{end}}</ul></li>
{{end}}</ul>

<h2>What is sent</h2>
{{range $i, $s := .Steps}}<p><code>{{v (step $i $s $.Steps)}}</code></p>
<ul>{{if .Reads}}<li>only reads: {{v .Reads}}</li>{{end}}
{{if .Query}}<li class="mono">query {{v (pairs .Query)}}</li>{{end}}
{{range .Headers}}<li class="mono">{{v .Name}}: {{v (inline .Value)}}</li>{{end}}
{{with .Body}}<li><span class="mono">{{v $s.BodyKind}}{{if $s.ContentType}} ({{v $s.ContentType}}){{end}}</span> {{template "tree" .}}</li>{{end}}
{{range .Rows}}<li>{{v (row .)}}</li>{{end}}</ul>
{{end}}

<h2>What comes back</h2>
{{range .Result}}{{template "output" .}}{{else}}<p>nothing but that it worked</p>{{end}}
{{if .Display}}<p>for people, never as data:</p>{{end}}
{{range .Display}}{{template "output" .}}{{end}}
{{if .Checks}}<p>only if</p>
<ul>{{range .Checks}}<li>{{v .}}</li>
{{end}}</ul>{{end}}
{{if .Codes}}<ul>{{range .Codes}}<li>{{v (code .)}}</li>
{{end}}</ul>{{end}}

<h2>What is asked</h2>
{{if .Approval.Sentence}}<p>{{v (quote .Approval.Sentence)}}</p>
<ul>{{range .Approval.Show}}<li>{{v .Name}}: <span class="mono">{{v (inline .Value)}}</span></li>{{end}}</ul>
{{else}}<p>The contract has no sentence: where a target asks, the summary and all inputs are shown.</p>{{end}}
<p class="dim">the contract alone: {{v (ask .Approval.Ask)}}</p>

<h2>Done once</h2>
<ul>{{range .Once}}<li>{{v .}}</li>{{end}}<li>{{v (retry .Retry)}}</li></ul>

{{if .Exceptions}}<h2>Rules set aside</h2>
<ul>{{range .Exceptions}}<li><code>{{v .Rule}}</code>: {{v .Because}}</li>{{end}}</ul>{{end}}

<h2>Fixtures</h2>
<p>{{v (fixtures .Fixtures)}}</p>
</body>
</html>
{{define "output"}}<div class="item"><code>{{v .Name}}{{if not .Required}}?{{end}}</code><span class="mono">{{v .Bound.Words}}</span>
<span class="dim">{{range $i, $f := .From}}{{if $i}}; or {{end}}from {{v $f}}{{else}}nothing picks it{{end}}</span></div>
{{end}}
{{define "tree"}}{{if .Members}}<ul>{{range .Members}}<li><code>{{v .Name}}</code>: {{template "tree" .Value}}</li>{{end}}</ul>
{{- else if .Items}}<ul>{{range .Items}}<li>{{template "tree" .}}</li>{{end}}</ul>
{{- else}}<span class="mono">{{v .Text}}</span>{{end}}{{end}}`
