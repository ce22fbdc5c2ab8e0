package main

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func htmlBase(t testing.TB) *url.URL {
	t.Helper()
	u, err := url.Parse("https://docs.example/guide/start.html?v=1")
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestHTMLMarkdown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, page, markdown, plain string }{
		{"headings and paragraphs", "<h1>One</h1>\n<p>a b\n c</p><p>d</p><H2 class=x>Two</H2>e", "# One\n\na b c\n\nd\n\n## Two\n\ne", "One\n\na b c\n\nd\n\nTwo\n\ne"},
		{"emphasis holds to its words", "<p>a<b> bold </b>c <em>i</em><strong>s</strong> <b></b><s>gone</s></p>", "a **bold** c *i***s** ~~gone~~", "a bold c is gone"},
		{"emphasis over blocks", "<b><p>x</p><p>y</p></b>z", "**x**\n\n**y**\n\nz", "x\n\ny\n\nz"},
		{"links are resolved", `<a href="../a b?x=1&amp;y=2">up</a> <a href=//other.example/p>p</a> <a href="#here">here</a> <a href="javascript:x()">js</a> <a href="mailto:x@docs.example">m</a>`,
			"[up](https://docs.example/a%20b?x=1&y=2) [p](https://other.example/p) here js [m](mailto:x@docs.example)", "up p here js m"},
		{"base", `<base href="/v2/"><base href="/v3/"><a href="x(1)">x]</a>`, `[x\]](<https://docs.example/v2/x(1)>)`, "x]"},
		{"a link around blocks", `<a href="/x"><h3>Head</h3><p>text</p></a><p>after`, "### [Head text](https://docs.example/x)\n\nafter", "Head text\n\nafter"},
		{"a link that is never closed", `<ul><li><a href=/a>one<li><a href=/b>two</ul><p>three`, "- [one](https://docs.example/a)\n- [two](https://docs.example/b)\n\nthree", "- one\n- two\n\nthree"},
		{"lists", "<p>x</p><ul><li>a<li>b<ol start=3><li>c</li><li>d<p>e</p></li></ol></li><li><p>f</p><p>g</p></ul>y", "x\n\n- a\n- b\n  3. c\n  4. d\n\n     e\n- f\n\n  g\n\ny", "x\n\n- a\n- b\n  3. c\n  4. d\n\n     e\n- f\n\n  g\n\ny"},
		{"item numbers", "<ol><li value=7>a<li>b</ol><ul><li><input type=checkbox checked> done<li><input type=checkbox>open</ul>", "7. a\n8. b\n\n- [x] done\n- [ ] open", "7. a\n8. b\n\n- [x] done\n- [ ] open"},
		{"quotes", "<blockquote><p>a</p><p>b<br>c</p><blockquote>d</blockquote></blockquote>e", "> a\n>\n> b\n> c\n>\n> > d\n\ne", "a\n\nb\nc\n\nd\n\ne"},
		{"code", "<p>run <code>a  `b`</code> or <kbd>x</kbd></p><pre><code class=\"hl language-go\">func f() {\n\tx()\n\n}\n</code></pre>z", "run `` a `b` `` or `x`\n\n```go\nfunc f() {\n\tx()\n\n}\n```\n\nz", "run a `b` or x\n\nfunc f() {\n\tx()\n\n}\n\nz"},
		{"a fence within code", "<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````", "```\nx\n```"},
		{"code in an item", "<ul><li>a<pre>x\ny</pre>b</ul>", "- a\n\n  ```\n  x\n  y\n  ```\n\n  b", "- a\n\n  x\n  y\n\n  b"},
		{"images", `<img src=/i.png alt="a  cat"><img src=x.png><a href=/y><img alt=logo src=z.png></a><img alt=inline src="data:image/png;base64,AA">`, "![a cat](https://docs.example/i.png)[logo](https://docs.example/y)inline", "a catlogoinline"},
		{"a table", "<table><caption>Cap</caption><thead><tr><th>A<th>B</thead><tr><td>1|2</td><td><b>x</b><p>y</p><ul><li>z</ul></td></tr><tr><td>only</table>w", "Cap\n\n| A | B |\n|---|---|\n| 1\\|2 | **x** y z |\n| only |  |\n\nw", "Cap\n\nA | B\n1|2 | x y z\nonly\n\nw"},
		{"spans", "<table><tr><th colspan=2>A<th>B<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td>5</table>", "| A |  | B |\n|---|---|---|\n| 1 | 2 | 3 |\n|  | 4 | 5 |", "A |  | B\n1 | 2 | 3\n | 4 | 5"},
		{"a layout of tables", "<table><tr><td><h1>x</h1></td><td><table><tr><th>a<th>b<tr><td>1<td>2</table></td></tr></table>", "# x\n\n| a | b |\n|---|---|\n| 1 | 2 |", "x\n\na | b\n1 | 2"},
		{"a hidden table before one", "<div hidden><table><tr><td>x<td>y</table></div><table><tr><td>one</table><table><tr><td>1<td>2</table>", "one\n\n| 1 | 2 |\n|---|---|", "one\n\n1 | 2"},
		{"what is not read", "<script>if (a</script >b</script>x<style>p{}</style><template><p>t</p></template><!-- c -- > --><svg><title>s</title><path/></svg><button>Copy</button><select><option>o</select><noscript>n</noscript><iframe>f</iframe><textarea>ta</textarea>", "bxn", "bxn"},
		{"hidden text", `a<p hidden>h<p>b<span style="display: none">h<b>i</b></span>c<div aria-hidden=true>h<div>h</div>h</div><div><i style='visibility:hidden'>h</div>d<input hidden>`, "a\n\nbc\nd", "a\n\nbc\nd"},
		{"references", "<p>&lt;b&gt; &amp;amp; &#8364;&#x20AC; &eacute; &nosuch; &copy &AMP &CounterClockwiseContourIntegral; &#0; &nbsp;x</p>", "<b> &amp; €€ é &nosuch; © & ∳ \uFFFD  x", "<b> &amp; €€ é &nosuch; © & ∳ \uFFFD  x"},
		{"what does not show", "a\u200bb\u00adc\U000e0041d\u202ee\x00f \u200d", "abcdef \u200d", "abcdef \u200d"},
		{"definitions", "<dl><dt>t<dd>d<p>more</p><dt>u<dd>e</dl>f", "t\n: d\n\n  more\n\nu\n: e\n\nf", "t\n: d\n\n  more\n\nu\n: e\n\nf"},
		{"rules and rows", "a<hr>b<div>c</div><div>d</div>e<br><br>f", "a\n\n---\n\nb\nc\nd\ne\nf", "a\n\nb\nc\nd\ne\nf"},
		{"odd tags", "<P>a<B CLASS=x>b</B></P ><p/>c<x-y>d</x-y></nosuch></ 3><![CDATA[e]]>f<?pi x?>g<a href='>'>h</a><p>i < j <3 a<", "a**b**\n\ncdfg[h](https://docs.example/guide/%3E)\n\ni < j <3 a<", "ab\n\ncdfgh\n\ni < j <3 a<"},
		{"attributes", `<a title="x>y" href=/z/ class>q</a><a HREF = '/w' href=/no>r</a>`, "[q](https://docs.example/z/)[r](https://docs.example/w)", "qr"},
		{"plaintext and xmp", "<xmp><b>x</b></xmp>y<plaintext>z</p><b>", "```\n<b>x</b>\n```\n\nyz</p><b>", "<b>x</b>\n\nyz</p><b>"},
		{"a tag that is never closed", `a<p class="x>b`, "a", "a"},
		{"comments", "a<!-->b<!--->c<!----!>d<!-- x", "abcd", "abcd"},
		{"a heading that is never closed", "<h1>x<ul><li>y</ul><h2>z</h2>w", "# x y\n\n## z\n\nw", "x y\n\nz\n\nw"},
		{"exponents", "<p>10<sup>6</sup> m<sup>−2</sup> x<sup>n</sup> 1<sup>st</sup> seen<a><sup>[1]</sup></a> <sup></sup>7 <code>2<sup>10</sup></code> H<sub>2</sub>O", "10^6 m^−2 xn 1st seen[1] 7 `2^10` H2O", "10^6 m^−2 xn 1st seen[1] 7 2^10 H2O"},
		{"nothing", "", "", ""},
	} {
		if got := readHTML(tc.page, htmlBase(t), false); got.Text != tc.markdown || got.Cut {
			t.Errorf("%s:\n%s\n got %q\nwant %q", tc.name, tc.page, got.Text, tc.markdown)
		}
		if got := readHTML(tc.page, htmlBase(t), true); got.Text != tc.plain || got.Cut {
			t.Errorf("%s, plain:\n got %q\nwant %q", tc.name, got.Text, tc.plain)
		}
	}
}

func TestHTMLTitle(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"<html><head><title> A &amp; B\n c </title><body><svg><title>no</title></svg>x": "A & B c",
		"<svg><title>no</title></svg>": "", "<TITLE>x</TITLE><title>y</title>": "x", "x": "",
	} {
		if got := readHTML(page, nil, false).Title; got != want {
			t.Errorf("%q: title %q, want %q", page, got, want)
		}
	}
}

// htmlTorture are pages made to cost time.
func htmlTorture(n int) map[string]string {
	r := strings.Repeat
	return map[string]string{
		"less": r("<", n), "open tags": r("<a", n/2), "deep": r("<div>", n/5) + "x", "deep lists": r("<ul><li>x", n/9), "deep quotes": r("<blockquote>x<br>y", n/17), "bold": r("<b>x", n/4) + r("</i>", n/4), "crossed": r("<b><i>x</b>", n/11),
		"links": r("<a href=x>", n/10), "long links": "<base href=/" + r("y", 2000) + "/>" + r("<a href=x>y</a>", n/15), "comments": r("<!--", n/4), "dashes": "<!--" + r("-", n), "ends": r("</p", n/3), "closed": r("</p>", n/4), "scripts": r("<script>", n/8), "half raw": "<title>" + r("</title", n/7),
		"tables": r("<table>", n/7) + "x", "cells": "<table>" + r("<td colspan=99 rowspan=99>", n/26), "rows": "<table><tr>" + r("<td>", 60) + r("<tr><td rowspan=20>x", n/20), "references": r("&", n/2) + r("&a", n/4), "one reference": "&" + r("a", n), "attributes": "<p " + r("a=1 ", n/4) + ">", "quotes": r("<p a='", n/6), "pres": r("<pre>", n/5) + "x", "hidden": r("<div hidden><p>", n/15), "codes": r("<code>`", n/7),
		"headings": r("<h1>x", n/5), "dd": r("<dd>x<br>", n/9), "items": r("<li><blockquote>", n/16), "ticks": "<code>" + r("` ", n/2),
	}
}

// However it is made, a page takes time that grows with it, and gives no more than a few times its size.
func TestHTMLTorture(t *testing.T) {
	t.Parallel()
	pages := htmlTorture(1 << 17)
	pages["10 MB"] = strings.Repeat("<", 10<<20)
	for name, page := range pages {
		start := time.Now()
		got := readHTML(page, htmlBase(t), false)
		if took := time.Since(start); took > 20*time.Second { // a second at the most; where it does not grow with the page it is hours, and the race detector takes its time
			t.Errorf("%s: %d bytes took %v", name, len(page), took)
		} else if testing.Verbose() {
			t.Logf("%s: %d bytes, %v, %d bytes of text", name, len(page), took, len(got.Text))
		}
		if len(got.Text) > (htmlOutGrow+1)*len(page)+2*htmlOutBase {
			t.Errorf("%s: %d bytes gave %d", name, len(page), len(got.Text))
		}
	}
	if got := readHTML(strings.Repeat("<div>", 100_000)+"deep"+strings.Repeat("</div>", 100_000)+"<p>after", nil, false).Text; got != "deep\n\nafter" {
		t.Errorf("100,000 levels: %.80q", got)
	}
}

func FuzzHTMLText(f *testing.F) {
	for _, page := range htmlTorture(200) {
		f.Add(page)
	}
	f.Add("<table><tr><th rowspan=2>a<td><ul><li>b</table><a href=/x><h1>y</h1></a><pre>z")
	f.Fuzz(func(t *testing.T, page string) {
		for _, plain := range []bool{false, true} {
			got := readHTML(page, htmlBase(t), plain)
			if utf8.ValidString(page) && !utf8.ValidString(got.Text+got.Title) {
				t.Errorf("no UTF-8: %q", got.Title+got.Text)
			}
			if len(got.Text) > (htmlOutGrow+1)*len(page)+2*htmlOutBase {
				t.Errorf("%d bytes gave %d", len(page), len(got.Text))
			}
		}
	})
}
