// This file turns an HTML page into Markdown or plain text: what a reader sees of it, in its order. It builds no tree: elements that are open are counted, so that the
// time it takes grows with the page alone, however its tags are nested or left open. Scripts, styles, templates, comments, form controls, drawings and what is
// marked as hidden are left out; style sheets are not read.
package main

import (
	"html"
	"net/url"
	"strings"
)

const (
	htmlURLMax   = 2048 // bytes of an address in the result; a link with a longer one is its text alone
	htmlTitleMax = 300  // bytes of a title
)

// htmlPage is a page turned into text. Cut says that its end is missing, because there would be far more text than page.
type htmlPage struct {
	Title, Text string
	Cut         bool
}

// htmlReader is one page on its way.
type htmlReader struct {
	z     htmlTokenizer
	w     *htmlWriter
	base  *url.URL
	page  htmlPage
	based bool // a base element was met

	open   map[string]int // visible elements that are open, by name
	skip   string         // the hidden element that is open
	inside map[string]int // elements that are open in it

	data   []bool // for each table in its order: it holds data, and no layout
	tables int    // met so far
	grid   *htmlGrid
	pre    *strings.Builder // within pre
	lang   string
	code   *strings.Builder // within code
	raised bool             // right behind the start of sup
}

// readHTML reads a page that came from base.
func readHTML(page string, base *url.URL, plain bool) htmlPage {
	r := &htmlReader{z: htmlTokenizer{s: page}, w: newHTMLWriter(plain, len(page)), base: base, open: map[string]int{}, data: htmlDataTables(page)}
	for !r.w.full {
		t, ok := r.z.next()
		if !ok {
			break
		}
		switch t.kind {
		case htmlText:
			r.text(html.UnescapeString(t.text))
		case htmlRaw:
			r.raw(t)
		case htmlStart:
			r.start(t)
		case htmlEnd:
			r.end(t.name)
		}
	}
	r.endCode()
	r.endPre()
	r.endTable()
	r.w.endLink()
	r.w.closeStyles(nil)
	r.page.Text, r.page.Cut = strings.TrimSpace(r.w.out.String()), r.w.full
	return r.page
}

func (r *htmlReader) text(s string) {
	if r.raised && s != "" {
		if r.raised = false; htmlExponent(s) {
			s = "^" + s
		}
	}
	switch {
	case r.skip != "":
	case r.pre != nil:
		r.pre.WriteString(s)
	case r.code != nil:
		r.code.WriteString(s)
	default:
		r.w.text(s)
	}
}

// htmlExponent reports a text that read without a mark would make another number of the one before it.
func htmlExponent(s string) bool {
	for _, minus := range [...]string{"-", "−", "–"} {
		s = strings.TrimPrefix(s, minus)
	}
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// raw takes the content of a raw element: only a title and xmp, an old pre, are seen.
func (r *htmlReader) raw(t htmlToken) {
	if r.skip != "" {
		return
	}
	switch t.name {
	case "title":
		if r.page.Title == "" {
			r.page.Title = brief(htmlClean(strings.Join(strings.Fields(html.UnescapeString(t.text)), " ")), htmlTitleMax)
		}
	case "xmp":
		r.endCode()
		r.w.verbatim(t.text, "")
	}
}

// htmlVoid reports an element without an end tag (HTML standard 13.1.2).
//
//go:noinline for size: it is called in many places
func htmlVoid(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

// htmlUnseen reports an element whose content is not read.
func htmlUnseen(name string) bool {
	switch name {
	case "template", "svg", "canvas", "object", "audio", "video", "select", "datalist", "button", "annotation", "annotation-xml", "map", "rp":
		return true
	}
	return false
}

// htmlHidden reports what a page marks as not to be seen or read.
func htmlHidden(attrs map[string]string) bool {
	if _, hidden := attrs["hidden"]; hidden || strings.EqualFold(attrs["aria-hidden"], "true") {
		return true
	}
	if attrs["style"] == "" {
		return false
	}
	style := strings.ToLower(strings.Join(strings.Fields(attrs["style"]), ""))
	for _, part := range [...]string{"display:none", "visibility:hidden", "font-size:0;", "opacity:0;"} {
		if strings.Contains(style+";", part) {
			return true
		}
	}
	return false
}

func (r *htmlReader) start(t htmlToken) {
	if t.name == "table" {
		r.tables++ // hidden ones count, as in data
	}
	if r.skip != "" {
		if !r.ends(t.name) {
			if !htmlVoid(t.name) {
				r.inside[t.name]++
			}
			return
		}
		r.skip = ""
	}
	attrs := map[string]string(nil)
	if strings.TrimRight(t.attrs, " /") != "" {
		attrs = parseHTMLAttrs(t.attrs)
	}
	void := htmlVoid(t.name)
	if !void && !htmlRawElement(t.name) && (htmlUnseen(t.name) || htmlHidden(attrs)) {
		if !strings.HasSuffix(t.attrs, "/") || t.name != "svg" {
			r.skip, r.inside = t.name, map[string]int{t.name: 1}
		}
		return
	}
	if void && htmlHidden(attrs) {
		return
	}
	if !void {
		r.open[t.name]++
	}
	r.raised = t.name == "sup"
	switch {
	case r.startInline(t.name, attrs):
	case r.startTable(t.name, attrs):
	default:
		r.startBlock(t.name, attrs)
	}
}

// ends reports a start tag that ends the hidden element, whose own end tag was left out (HTML standard 13.1.2.4).
func (r *htmlReader) ends(name string) bool {
	if len(r.inside) > 1 || r.inside[r.skip] > 1 {
		return false
	}
	switch r.skip {
	case "p":
		return htmlBlockNeed(name) > 0 || name == "table"
	case "li":
		return name == "li"
	case "dt", "dd":
		return name == "dt" || name == "dd"
	case "td", "th":
		return name == "td" || name == "th" || name == "tr"
	case "tr":
		return name == "tr" || name == "tbody"
	}
	return false
}

func (r *htmlReader) end(name string) {
	r.raised = false
	if r.skip != "" {
		switch {
		case r.inside[name] > 0:
			if r.inside[name]--; name == r.skip && r.inside[name] == 0 {
				r.skip = ""
			}
			return
		case r.open[name] == 0:
			return
		}
		r.skip = "" // an element around it ends
	}
	if name != "br" && name != "p" { // which count without a start tag, too
		if r.open[name] == 0 {
			return
		}
		r.open[name]--
	}
	switch {
	case r.endInline(name):
	case r.endCell(name):
	default:
		r.endBlock(name)
	}
}

// htmlStyleOf gives the emphasis that an element means.
//
//go:noinline for size: it is called in many places
func htmlStyleOf(name string) (style int, ok bool) {
	switch name {
	case "b", "strong":
		return htmlBold, true
	case "i", "em", "cite", "dfn", "var":
		return htmlItalic, true
	case "s", "del", "strike":
		return htmlStrike, true
	}
	return 0, false
}

// startInline begins what stands within a line.
func (r *htmlReader) startInline(name string, attrs map[string]string) bool {
	if style, ok := htmlStyleOf(name); ok {
		r.w.want[style]++
		return true
	}
	switch name {
	case "a":
		if r.pre == nil && r.code == nil {
			r.w.startLink(r.address(attrs["href"]))
			if r.w.link.url == "" {
				r.w.link = nil // a place in the page, or nothing that can be fetched
			}
		}
	case "code", "kbd", "samp", "tt":
		if r.pre != nil {
			if r.lang == "" {
				r.lang = htmlLanguage(attrs["class"])
			}
		} else if r.code == nil {
			r.code = &strings.Builder{}
		}
	case "img":
		r.image(attrs)
	case "br":
		r.newline()
	case "wbr":
	case "q":
		r.text("“")
	case "input":
		if strings.EqualFold(attrs["type"], "checkbox") && r.open["li"] > 0 {
			_, checked := attrs["checked"]
			r.text(map[bool]string{true: "[x] ", false: "[ ] "}[checked])
		}
	case "base":
		if u, err := url.Parse(attrs["href"]); err == nil && !r.based && attrs["href"] != "" && len(attrs["href"]) <= htmlURLMax && r.base != nil {
			r.base, r.based = r.base.ResolveReference(u), true
		}
	case "span", "font", "small", "big", "u", "ins", "mark", "sub", "sup", "abbr", "time", "label", "bdi", "bdo", "ruby", "rt", "rb", "nobr", "data", "output", "meter", "progress", "link", "meta", "html", "head", "noscript", "picture", "slot", "acronym":
	default:
		return false
	}
	return true
}

func (r *htmlReader) endInline(name string) bool {
	if style, ok := htmlStyleOf(name); ok {
		r.w.want[style] = max(0, r.w.want[style]-1)
		return true
	}
	switch name {
	case "a":
		r.w.endLink()
	case "code", "kbd", "samp", "tt":
		r.endCode()
	case "q":
		r.text("”")
	case "br":
		r.newline()
	default:
		return false
	}
	return true
}

func (r *htmlReader) newline() {
	switch {
	case r.pre != nil:
		r.pre.WriteByte('\n')
	case r.code != nil:
		r.code.WriteByte(' ')
	default:
		r.w.block(1)
	}
}

func (r *htmlReader) endCode() {
	if r.code == nil {
		return
	}
	s := r.code.String()
	r.code = nil
	r.w.code(s)
}

func (r *htmlReader) endPre() {
	if r.pre == nil {
		return
	}
	s, lang := r.pre.String(), r.lang
	r.pre, r.lang = nil, ""
	r.w.verbatim(s, lang)
}

// image writes what an image is said to show.
func (r *htmlReader) image(attrs map[string]string) {
	alt := strings.Join(strings.Fields(attrs["alt"]), " ")
	if alt == "" {
		return
	}
	src := r.address(attrs["src"])
	if r.w.plain || r.w.link != nil || r.pre != nil || r.code != nil || src == "" {
		r.text(alt)
		return
	}
	r.w.word("![" + strings.ReplaceAll(htmlClean(alt), "]", `\]`) + "](" + htmlAddress(src) + ")")
}

// address resolves an address of the page. It is "" for a place in the page, for what is no address, and for what is none to go to.
func (r *htmlReader) address(ref string) string {
	ref = strings.Trim(ref, "\t\n\f\r ")
	if ref == "" || ref[0] == '#' || len(ref) > htmlURLMax {
		return ""
	}
	u, err := url.Parse(ref)
	if err != nil {
		return ""
	}
	if r.base != nil {
		u = r.base.ResolveReference(u)
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https", "mailto", "tel", "ftp", "":
	default:
		return ""
	}
	if s := u.String(); len(s) <= htmlURLMax {
		return visibleLine(s)
	}
	return ""
}

// htmlLanguage finds the language of code in a class attribute.
func htmlLanguage(class string) string {
	for word := range strings.FieldsSeq(class) {
		for _, before := range [...]string{"language-", "lang-", "highlight-source-", "brush:"} {
			if lang, ok := strings.CutPrefix(word, before); ok && lang != "" && len(lang) <= 30 && strings.Trim(strings.ToLower(lang), "abcdefghijklmnopqrstuvwxyz0123456789+#-_") == "" {
				return strings.ToLower(lang)
			}
		}
	}
	return ""
}

// htmlBlockNeed gives the line ends around a block; 0 for what is none.
//
//go:noinline for size: it is called in many places
func htmlBlockNeed(name string) int {
	switch name {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "listing", "ul", "ol", "dl", "menu", "dir", "hr", "article", "section", "figure", "main", "header", "footer", "nav", "aside", "form", "fieldset", "address", "details", "table", "body", "center", "dialog", "hgroup", "search":
		return 2
	case "div", "li", "dt", "dd", "summary", "figcaption", "legend", "tr", "td", "th", "caption", "option", "optgroup", "thead", "tbody", "tfoot", "frameset":
		return 1
	}
	return 0
}

// startBlock begins what stands on lines of its own. An element that is not known is read as if it were not there.
func (r *htmlReader) startBlock(name string, attrs map[string]string) {
	need := htmlBlockNeed(name)
	if need == 0 || r.pre != nil {
		return
	}
	r.endCode()
	switch name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.w.leave("h")
	case "li":
		r.endItem()
	case "ul", "ol", "menu", "dir":
		if r.w.counts["li"] > 0 {
			need = 1
		}
	}
	r.w.block(need)
	mark := func(s string) string {
		if r.w.plain {
			return ""
		}
		return s
	}
	switch name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.w.enter(htmlNest{name: "h", first: mark(strings.Repeat("#", int(name[1]-'0')) + " ")})
	case "blockquote":
		r.w.enter(htmlNest{name: name, first: mark("> "), rest: mark("> ")})
	case "ul", "menu", "dir":
		r.w.enter(htmlNest{name: "ul", count: -1})
	case "ol":
		r.w.enter(htmlNest{name: "ol", count: htmlNumber(attrs["start"], 1)})
	case "li":
		r.w.item(htmlNumber(attrs["value"], -1))
	case "dd":
		r.w.leave("dd")
		r.w.enter(htmlNest{name: "dd", first: ": ", rest: "  "})
	case "dt":
		r.w.leave("dd")
	case "pre", "listing":
		r.pre, r.lang = &strings.Builder{}, htmlLanguage(attrs["class"])
	case "hr":
		r.w.rule()
	}
}

// endItem ends the item that is open in the innermost list.
func (r *htmlReader) endItem() {
	for i := len(r.w.nests) - 1; i >= 0; i-- {
		switch r.w.nests[i].name {
		case "li":
			r.w.leave("li")
			return
		case "h", "dd":
		default:
			return
		}
	}
}

func (r *htmlReader) endBlock(name string) {
	need := htmlBlockNeed(name)
	if name == "pre" || name == "listing" {
		r.endPre()
	}
	if need == 0 || r.pre != nil {
		return
	}
	r.endCode()
	switch name {
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.w.leave("h")
	case "blockquote", "ol", "li", "dd":
		r.w.leave(name)
	case "ul", "menu", "dir":
		r.w.leave("ul")
	case "dl":
		r.w.leave("dd")
	}
	if (name == "ul" || name == "ol") && r.w.counts["li"] > 0 {
		need = 1
	}
	r.w.block(need)
}

// startTable begins a part of a table.
func (r *htmlReader) startTable(name string, attrs map[string]string) bool {
	switch name {
	case "table":
		r.endTable()
		if r.pre != nil || r.tables > len(r.data) || !r.data[r.tables-1] || r.w.flat > 0 {
			return false
		}
		r.endCode()
		r.w.block(2)
		r.grid = &htmlGrid{}
	case "tr":
		if r.grid == nil {
			return false
		}
		r.grid.close()
		r.grid.row()
	case "td", "th":
		if r.grid == nil {
			return false
		}
		r.endCode()
		r.endPre()
		r.grid.close()
		r.grid.open(r.w, htmlNumber(attrs["colspan"], 1), htmlNumber(attrs["rowspan"], 1))
	case "caption":
		return false
	case "thead", "tbody", "tfoot", "colgroup", "col":
		if r.grid != nil {
			r.endCode()
			r.grid.close()
		}
		return r.grid != nil
	default:
		return false
	}
	return true
}

// endCell ends a part of a table.
func (r *htmlReader) endCell(name string) bool {
	if r.grid == nil {
		return false
	}
	switch name {
	case "table":
		r.endTable()
	case "td", "th", "tr", "thead", "tbody", "tfoot":
		r.endCode()
		r.endPre()
		r.grid.close()
	default:
		return false
	}
	return true
}

// endTable writes the table of data that is open.
func (r *htmlReader) endTable() {
	g := r.grid
	if g == nil {
		return
	}
	r.endCode()
	r.endPre()
	g.close()
	r.grid = nil
	g.write(r.w)
}
