// This file reads a JSON Schema into checks (draft-07, 2019-09 and 2020-12; the keywords of validation and applicators,
// local references). It owns what a schema may be; it never fetches anything. Checking values is schema_validate.go.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
)

const (
	schemaMaxNodes    = 10000  // subschemas that one schema may reach
	schemaMaxPatterns = 200000 // RE2 instructions, about, of all patterns of one schema
)

// schemaDraft orders the dialects.
type schemaDraft int

const (
	schemaDraft7 schemaDraft = iota
	schemaDraft2019
	schemaDraft2020
)

// jsonSchema is a compiled schema. It is safe for use by many goroutines at once.
type jsonSchema struct {
	root  *schemaNode
	draft schemaDraft
}

// schemaNode is one subschema. A nil pointer means that the keyword is absent, as does -1 for a count.
type schemaNode struct {
	refuse bool // the schema false

	ref          *schemaNode
	types        schemaKind
	constant     *schemaValue
	constantNorm string
	enum         map[string]bool
	enumText     string

	minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf *decimal

	minLength, maxLength, minItems, maxItems     int
	minContains, maxContains, minProps, maxProps int
	pattern                                      *schemaPattern
	unique                                       bool
	prefix                                       []*schemaNode
	items, contains, unevaluatedItems            *schemaNode
	properties                                   map[string]*schemaNode
	patternProperties                            []schemaPatternNode
	additional, names, unevaluatedProperties     *schemaNode
	required                                     []string
	dependentRequired                            []schemaDependency
	dependentSchemas                             []schemaNamedNode
	all, any, one                                []*schemaNode
	not, condition, consequence, alternative     *schemaNode
}

type schemaPatternNode struct {
	pattern *schemaPattern
	node    *schemaNode
}

type schemaNamedNode struct {
	name string
	node *schemaNode
}

type schemaDependency struct {
	name     string
	required []string
}

// schemaDialect reports a $schema that tai does not know; an absent one is 2020-12 (MCP 2025-11-25, Basic, JSON Schema).
func schemaDialect(raw json.RawMessage) error {
	members, err := jsonObject(raw)
	if err != nil {
		return errorf("schema: %w", err)
	}
	for _, m := range members {
		if m.Key == "$schema" {
			_, err := schemaDraftOf(m.Value)
			return err
		}
	}
	return nil
}

func schemaDraftOf(raw json.RawMessage) (schemaDraft, error) {
	uri, ok := jsonString(raw)
	if !ok {
		return 0, newError("schema: $schema is not a string")
	}
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(uri, "#"), "https://"), "http://")
	switch name {
	case "json-schema.org/draft-07/schema":
		return schemaDraft7, nil
	case "json-schema.org/draft/2019-09/schema":
		return schemaDraft2019, nil
	case "json-schema.org/draft/2020-12/schema":
		return schemaDraft2020, nil
	}
	return 0, errorf("schema dialect %s is not known (draft-07, 2019-09 and 2020-12 are)", quoteClip(uri))
}

// compileSchema reads a schema. What it refuses: an unknown dialect, a keyword of the wrong form, a reference that is not
// local (nothing is fetched), a pattern RE2 cannot run, and more or deeper subschemas than the caps. Keywords it does not
// know are passed over, as is format.
func compileSchema(raw json.RawMessage) (*jsonSchema, error) {
	root, err := parseSchemaValue(raw)
	if err != nil {
		return nil, errorf("schema: %w", err)
	}
	c := schemaCompiler{draft: schemaDraft2020, nodes: map[*schemaValue]*schemaNode{}, resources: map[string]*schemaResource{}, roots: map[*schemaValue]*schemaResource{}}
	if dialect := root.member("$schema"); dialect != nil {
		if c.draft, err = schemaDraftOf(dialect.raw); err != nil {
			return nil, err
		}
	}
	main := &schemaResource{root: root, base: &url.URL{}, anchors: map[string]*schemaValue{}}
	c.roots[root] = main
	c.resources[""] = main
	c.index(root, main)
	node, err := c.compile(root, main)
	if err != nil {
		return nil, errorf("schema: %w", err)
	}
	for len(c.queue) > 0 {
		p := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		if err := c.fill(p.node, p.v, p.res); err != nil {
			return nil, errorf("schema: behind a reference, %w", err)
		}
	}
	return &jsonSchema{root: node, draft: c.draft}, nil
}

// schemaResource is a part of the document with an identity of its own ($id); "#…" is read within it.
type schemaResource struct {
	root    *schemaValue
	base    *url.URL
	anchors map[string]*schemaValue
}

// schemaPromise is a node that is still to be read.
type schemaPromise struct {
	node *schemaNode
	v    *schemaValue
	res  *schemaResource
}

type schemaCompiler struct {
	draft       schemaDraft
	nodes       map[*schemaValue]*schemaNode // compiled or being compiled, so that references may be circular
	resources   map[string]*schemaResource   // by absolute URI without fragment
	roots       map[*schemaValue]*schemaResource
	queue       []schemaPromise
	path        []string // keywords and keys down to where we are, for errors
	patternCost int
}

// index finds the identities and anchors of the document. A reference may point to any place, so every place is searched
// but those that hold plain values.
func (c *schemaCompiler) index(v *schemaValue, res *schemaResource) {
	if v.kind == schemaObject {
		res = c.identify(v, res)
	}
	for i := range v.items {
		switch v.items[i].name {
		case "enum", "const", "default", "examples":
		default:
			c.index(&v.items[i], res)
		}
	}
}

func (c *schemaCompiler) identify(v *schemaValue, res *schemaResource) *schemaResource {
	if id := v.member("$id"); id != nil && id.kind == schemaString && (c.draft != schemaDraft7 || v.member("$ref") == nil) {
		text := id.text()
		if name, ok := strings.CutPrefix(text, "#"); ok {
			if c.draft == schemaDraft7 {
				res.anchors[name] = v
			}
		} else if u, err := res.base.Parse(strings.TrimSuffix(text, "#")); err == nil {
			if own := c.roots[v]; own != nil { // the whole document
				own.base = u
				res = own
			} else {
				res = &schemaResource{root: v, base: u, anchors: map[string]*schemaValue{}}
				c.roots[v] = res
			}
			c.resources[u.String()] = res
		}
	}
	if c.draft != schemaDraft7 {
		for _, key := range [...]string{"$anchor", "$dynamicAnchor"} {
			if a := v.member(key); a != nil && a.kind == schemaString {
				res.anchors[a.text()] = v
			}
		}
	}
	return res
}

func (c *schemaCompiler) fault(format string, args ...any) error {
	where := "#"
	if len(c.path) > 0 {
		where = "#/" + strings.Join(c.path, "/")
	}
	return errorf("at %s: %s", quoteClip(where), fmt.Sprintf(format, args...))
}

// compile reads the subschema v.
func (c *schemaCompiler) compile(v *schemaValue, res *schemaResource) (*schemaNode, error) {
	if n := c.nodes[v]; n != nil {
		return n, nil
	}
	if len(c.nodes) >= schemaMaxNodes {
		return nil, c.fault("more than %d subschemas", schemaMaxNodes)
	}
	n := newSchemaNode()
	c.nodes[v] = n
	return n, c.fill(n, v, res)
}

func newSchemaNode() *schemaNode {
	return &schemaNode{minLength: -1, maxLength: -1, minItems: -1, maxItems: -1, minContains: -1, maxContains: -1, minProps: -1, maxProps: -1}
}

// later promises the node of a reference's target. It is read when the way down to here is done, so that a long chain of
// references does not nest.
func (c *schemaCompiler) later(v *schemaValue, res *schemaResource) (*schemaNode, error) {
	if n := c.nodes[v]; n != nil {
		return n, nil
	}
	if len(c.nodes) >= schemaMaxNodes {
		return nil, c.fault("more than %d subschemas", schemaMaxNodes)
	}
	n := newSchemaNode()
	c.nodes[v] = n
	c.queue = append(c.queue, schemaPromise{n, v, res})
	return n, nil
}

// fill reads the subschema v into its node.
func (c *schemaCompiler) fill(n *schemaNode, v *schemaValue, res *schemaResource) error {
	if v.kind == schemaBool {
		n.refuse = !v.isTrue()
		return nil
	}
	if v.kind != schemaObject {
		return c.fault("a schema is an object or a boolean, not %s", v.brief())
	}
	if own := c.roots[v]; own != nil {
		res = own
	}
	if ref := v.member("$ref"); ref != nil && c.draft == schemaDraft7 { // draft-07: its siblings are ignored
		return c.keyword(n, ref, v, res)
	}
	for i := range v.items {
		if err := c.keyword(n, &v.items[i], v, res); err != nil {
			return err
		}
	}
	return nil
}

// keyword reads one member of the subschema whole.
func (c *schemaCompiler) keyword(n *schemaNode, v, whole *schemaValue, res *schemaResource) error {
	c.path = append(c.path, v.name)
	err := c.reference(n, v, res)
	if err == nil {
		err = c.assertion(n, v, whole)
	}
	if err == nil {
		err = c.applicator(n, v, whole, res)
	}
	c.path = c.path[:len(c.path)-1]
	return err
}

func (c *schemaCompiler) reference(n *schemaNode, v *schemaValue, res *schemaResource) error {
	switch v.name {
	case "$ref":
	case "$recursiveRef":
		if c.draft != schemaDraft2019 {
			return nil
		}
	case "$dynamicRef":
		if c.draft != schemaDraft2020 {
			return nil
		}
	default:
		return nil
	}
	if v.kind != schemaString {
		return c.fault("a reference is a string, not %s", v.brief())
	}
	if v.name != "$ref" && len(c.roots) > 1 {
		return c.fault("unsupported: %s in a schema of several resources", v.name) // its target could depend on the way taken
	}
	target, res, err := c.resolve(v.text(), res)
	if err != nil {
		return err
	}
	node, err := c.later(target, res)
	if err != nil {
		return err
	}
	if n.ref == nil {
		n.ref = node
	} else {
		n.all = append(n.all, node)
	}
	return nil
}

// resolve finds what a reference means in this document.
func (c *schemaCompiler) resolve(ref string, res *schemaResource) (*schemaValue, *schemaResource, error) {
	address, fragment, _ := strings.Cut(ref, "#")
	if address != "" {
		u, err := res.base.Parse(address)
		if err != nil {
			return nil, nil, c.fault("reference %s is no URI", quoteClip(ref))
		}
		if res = c.resources[u.String()]; res == nil {
			return nil, nil, c.fault("reference %s is not local; nothing is fetched", quoteClip(ref))
		}
	}
	name, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, nil, c.fault("reference %s is no URI", quoteClip(ref))
	}
	if name == "" {
		return res.root, res, nil
	}
	if name[0] != '/' {
		if v := res.anchors[name]; v != nil {
			return v, res, nil
		}
		return nil, nil, c.fault("reference %s has no target", quoteClip(ref))
	}
	v := res.root
	for token := range strings.SplitSeq(name[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v.kind {
		case schemaObject:
			v = v.member(token)
		case schemaArray:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v.items) || token != strconv.Itoa(i) {
				v = nil
				break
			}
			v = &v.items[i]
		default:
			v = nil
		}
		if v == nil {
			return nil, nil, c.fault("reference %s has no target", quoteClip(ref))
		}
		if own := c.roots[v]; own != nil {
			res = own
		}
	}
	return v, res, nil
}

// assertion reads the keywords that hold a value against a constant.
func (c *schemaCompiler) assertion(n *schemaNode, v, whole *schemaValue) (err error) {
	switch v.name {
	case "type":
		n.types, err = c.types(v)
	case "const":
		n.constant, n.constantNorm = v, string(v.normal(nil))
	case "enum":
		err = c.enum(n, v)
	case "minimum":
		n.minimum, err = c.number(v)
		if flag := whole.member("exclusiveMinimum"); flag != nil && flag.kind == schemaBool && flag.isTrue() {
			n.minimum, n.exclusiveMinimum = nil, n.minimum
		}
	case "maximum":
		n.maximum, err = c.number(v)
		if flag := whole.member("exclusiveMaximum"); flag != nil && flag.kind == schemaBool && flag.isTrue() {
			n.maximum, n.exclusiveMaximum = nil, n.maximum
		}
	case "exclusiveMinimum":
		if v.kind != schemaBool { // a boolean is draft-04's and changes minimum; generators still write it
			n.exclusiveMinimum, err = c.number(v)
		}
	case "exclusiveMaximum":
		if v.kind != schemaBool {
			n.exclusiveMaximum, err = c.number(v)
		}
	case "multipleOf":
		if n.multipleOf, err = c.number(v); err == nil && (n.multipleOf.sign() <= 0 || len(n.multipleOf.digits) > schemaMaxDivide) {
			err = c.fault("expected a number above 0")
		}
	case "minLength":
		n.minLength, err = c.count(v)
	case "maxLength":
		n.maxLength, err = c.count(v)
	case "minItems":
		n.minItems, err = c.count(v)
	case "maxItems":
		n.maxItems, err = c.count(v)
	case "minContains":
		if c.draft >= schemaDraft2019 {
			n.minContains, err = c.count(v)
		}
	case "maxContains":
		if c.draft >= schemaDraft2019 {
			n.maxContains, err = c.count(v)
		}
	case "minProperties":
		n.minProps, err = c.count(v)
	case "maxProperties":
		n.maxProps, err = c.count(v)
	case "uniqueItems":
		n.unique = v.isTrue()
		if v.kind != schemaBool {
			err = c.fault("expected a boolean, not %s", v.brief())
		}
	case "required":
		n.required, err = c.texts(v)
	case "pattern":
		if v.kind != schemaString {
			return c.fault("expected a string, not %s", v.brief())
		}
		n.pattern, err = c.regexp(v.text())
	}
	return err
}

func (c *schemaCompiler) types(v *schemaValue) (schemaKind, error) {
	names := []schemaValue{*v}
	if v.kind == schemaArray {
		names = v.items
	}
	var set schemaKind
	for i := range names {
		kind, ok := schemaTypeOf(names[i].text())
		if !ok {
			return 0, c.fault("unknown type %s", names[i].brief())
		}
		set |= kind
	}
	if set == 0 {
		return 0, c.fault("no type at all")
	}
	return set, nil
}

//go:noinline for size: it is called in many places
func schemaTypeOf(name string) (schemaKind, bool) {
	switch name {
	case "null":
		return schemaNull, true
	case "boolean":
		return schemaBool, true
	case "number":
		return schemaNumber, true
	case "integer":
		return schemaInteger, true
	case "string":
		return schemaString, true
	case "array":
		return schemaArray, true
	case "object":
		return schemaObject, true
	}
	return 0, false
}

func (c *schemaCompiler) enum(n *schemaNode, v *schemaValue) error {
	if v.kind != schemaArray {
		return c.fault("expected an array, not %s", v.brief())
	}
	n.enum = make(map[string]bool, len(v.items))
	var shown []string
	for i := range v.items {
		n.enum[string(v.items[i].normal(nil))] = true
		if len(shown) < 8 {
			shown = append(shown, v.items[i].brief())
		}
	}
	if n.enumText = strings.Join(shown, ", "); len(shown) < len(v.items) {
		n.enumText += ", …"
	}
	return nil
}

func (c *schemaCompiler) number(v *schemaValue) (*decimal, error) {
	if v.kind != schemaNumber {
		return nil, c.fault("expected a number, not %s", v.brief())
	}
	d := parseDecimal(v.raw)
	return &d, nil
}

// count reads a whole number of 0 or more; 2.0 is one. Beyond int it is as good as unbounded.
func (c *schemaCompiler) count(v *schemaValue) (int, error) {
	d, err := c.number(v)
	if err != nil {
		return 0, err
	}
	if !d.integer() || d.neg {
		return 0, c.fault("expected a whole number of 0 or more, not %s", v.brief())
	}
	if d.digits == "" {
		return 0, nil
	}
	if int64(len(d.digits))+d.exp > 18 {
		return math.MaxInt, nil
	}
	return strconv.Atoi(d.digits + strings.Repeat("0", int(d.exp)))
}

func (c *schemaCompiler) texts(v *schemaValue) ([]string, error) {
	if v.kind != schemaArray {
		return nil, c.fault("expected an array of strings, not %s", v.brief())
	}
	out := make([]string, len(v.items))
	for i := range v.items {
		if v.items[i].kind != schemaString {
			return nil, c.fault("expected an array of strings, not %s in it", v.items[i].brief())
		}
		out[i] = v.items[i].text()
	}
	return out, nil
}
