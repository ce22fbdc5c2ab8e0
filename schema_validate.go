// This file holds values against compiled schemas, in bounded steps. It knows how to say what is wrong; reading schemas
// is schema.go.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	schemaMaxSteps  = 64 << 20 // work of one check; a step is about 20 ns
	schemaMaxRefs   = 64       // references followed without going down into the value
	schemaMaxFrames = 20000    // subschemas nested in one another during a check
	schemaNodeSteps = 10       // work of holding one value against one subschema, before its texts
	schemaPathText  = 120      // bytes of a path in an error
	schemaBranches  = 3        // alternatives whose faults an error names
)

// validate holds a JSON text against the schema and returns the first fault: which property, what was expected, what came.
// A check that takes more than schemaMaxSteps is an error too.
func (s *jsonSchema) validate(raw json.RawMessage) error {
	v, err := parseSchemaValue(raw)
	if err != nil {
		return err
	}
	run := schemaRun{schema: s, steps: schemaMaxSteps, quiet: true}
	if run.eval(s.root, v, nil) == nil {
		return nil
	}
	if run.broken != nil {
		return run.broken
	}
	loud := schemaRun{schema: s, steps: 4 * schemaMaxSteps} // the same way again, now for the words
	if err := loud.eval(s.root, v, nil); err != nil && loud.broken == nil {
		return err
	}
	return errSchemaMismatch
}

// checkStructured holds the structured content of a tool's result against the output schema that the tool declared
// (MCP 2025-06-18, Tools, Output Schema). A tool without one passes; a tool with one has to send content.
func checkStructured(outputSchema, structured json.RawMessage) error {
	if len(outputSchema) == 0 {
		return nil
	}
	s, err := compileSchema(outputSchema)
	if err != nil {
		return errorf("output %w", err)
	}
	if len(structured) == 0 {
		return newError("structured content is missing, though the tool declares an output schema")
	}
	if err := s.validate(structured); err != nil {
		return errorf("structured content does not fit the output schema: %w", err)
	}
	return nil
}

// errSchemaMismatch is any fault while nobody needs the words.
var errSchemaMismatch = errors.New("does not fit the schema")

// schemaRun is one check of one value.
type schemaRun struct {
	schema *jsonSchema
	steps  int
	frames int
	refs   int // since the last step down
	quiet  bool
	path   []string // "[3]" for items
	broken error    // a bound was reached: whatever the schema says, the answer is no
}

func (r *schemaRun) spend(n int) bool {
	if r.steps -= n; r.steps < 0 && r.broken == nil {
		r.broken = errorf("checking against the schema takes more than %d steps", schemaMaxSteps)
	}
	return r.broken == nil
}

func (r *schemaRun) fault(format string, args ...any) error {
	if r.quiet {
		return errSchemaMismatch
	}
	if r.spend(100); r.broken != nil {
		return r.broken
	}
	what := fmt.Sprintf(format, args...)
	if len(r.path) == 0 {
		return newError(what)
	}
	var b strings.Builder
	for i, step := range r.path {
		if i > 0 && step[0] != '[' {
			b.WriteByte('.')
		}
		if b.WriteString(strings.TrimPrefix(step, "\x00")); b.Len() > schemaPathText {
			break
		}
	}
	return errorf("property %q: %s", clip(visibleKey(b.String()), schemaPathText), what)
}

// schemaSeen collects which members and items of one value the subschemas have looked at (unevaluated…).
type schemaSeen struct {
	members  map[string]bool
	items    map[int]bool
	upTo     int // items below it are seen
	allItems bool
	all      bool // all members
}

func (s *schemaSeen) member(name string) {
	if s == nil {
		return
	}
	if s.members == nil {
		s.members = map[string]bool{}
	}
	s.members[name] = true
}

func (s *schemaSeen) item(i int) {
	if s == nil {
		return
	}
	if s.items == nil {
		s.items = map[int]bool{}
	}
	s.items[i] = true
}

func (s *schemaSeen) add(o *schemaSeen) {
	if s == nil || o == nil {
		return
	}
	for name := range o.members {
		s.member(name)
	}
	for i := range o.items {
		s.item(i)
	}
	s.upTo = max(s.upTo, o.upTo)
	s.all = s.all || o.all
	s.allItems = s.allItems || o.allItems
}

// eval holds v against n. What n has looked at is added to seen, if anyone asks.
func (r *schemaRun) eval(n *schemaNode, v *schemaValue, seen *schemaSeen) error {
	if !r.spend(schemaNodeSteps) {
		return r.broken
	}
	if r.frames++; r.frames > schemaMaxFrames {
		r.broken = errorf("the schema nests deeper than %d levels", schemaMaxFrames)
		return r.broken
	}
	err := r.hold(n, v, seen)
	r.frames--
	return err
}

func (r *schemaRun) hold(n *schemaNode, v *schemaValue, seen *schemaSeen) error {
	if n.refuse {
		return r.fault("nothing is allowed here, got %s", v.brief())
	}
	if n.types != 0 && !v.fits(n.types) {
		return r.fault("expected %s, got %s", schemaTypeNames(n.types), v.brief())
	}
	if err := r.equal(n, v); err != nil {
		return err
	}
	own := seen
	if n.unevaluatedItems != nil || n.unevaluatedProperties != nil {
		own = &schemaSeen{}
	}
	var err error
	switch v.kind {
	case schemaNumber:
		err = r.number(n, v)
	case schemaString:
		err = r.text(n, v)
	case schemaArray:
		err = r.array(n, v, own)
	case schemaObject:
		err = r.object(n, v, own)
	}
	if err == nil {
		err = r.combine(n, v, own)
	}
	if err == nil && own != seen {
		if err = r.unevaluated(n, v, own); err == nil {
			seen.add(own)
		}
	}
	return err
}

func (r *schemaRun) equal(n *schemaNode, v *schemaValue) error {
	if n.constant == nil && n.enum == nil {
		return nil
	}
	if !r.spend(len(v.raw)) {
		return r.broken
	}
	norm := v.normal(nil)
	if n.constant != nil && string(norm) != n.constantNorm {
		return r.fault("expected %s, got %s", n.constant.brief(), v.brief())
	}
	if n.enum != nil && !n.enum[string(norm)] {
		return r.fault("expected one of %s; got %s", n.enumText, v.brief())
	}
	return nil
}

func (r *schemaRun) number(n *schemaNode, v *schemaValue) error {
	if n.minimum == nil && n.maximum == nil && n.exclusiveMinimum == nil && n.exclusiveMaximum == nil && n.multipleOf == nil {
		return nil
	}
	if !r.spend(len(v.raw)) {
		return r.broken
	}
	d := parseDecimal(v.raw)
	switch {
	case n.minimum != nil && d.compare(*n.minimum) < 0:
		return r.fault("expected at least %s, got %s", n.minimum, v.brief())
	case n.exclusiveMinimum != nil && d.compare(*n.exclusiveMinimum) <= 0:
		return r.fault("expected more than %s, got %s", n.exclusiveMinimum, v.brief())
	case n.maximum != nil && d.compare(*n.maximum) > 0:
		return r.fault("expected at most %s, got %s", n.maximum, v.brief())
	case n.exclusiveMaximum != nil && d.compare(*n.exclusiveMaximum) >= 0:
		return r.fault("expected less than %s, got %s", n.exclusiveMaximum, v.brief())
	case n.multipleOf != nil && (len(d.digits) > schemaMaxDivide || !r.spend(len(d.digits)*len(n.multipleOf.digits)/8) || !d.multipleOf(*n.multipleOf)):
		return r.fault("expected a multiple of %s, got %s", n.multipleOf, v.brief())
	}
	return nil
}

func (r *schemaRun) text(n *schemaNode, v *schemaValue) error {
	if n.minLength < 0 && n.maxLength < 0 && n.pattern == nil {
		return nil
	}
	if !r.spend(len(v.raw)) {
		return r.broken
	}
	s := v.text()
	size := utf8.RuneCountInString(s)
	if n.minLength >= 0 && size < n.minLength {
		return r.fault("expected at least %s, got %d", schemaMany(n.minLength, "character"), size)
	}
	if n.maxLength >= 0 && size > n.maxLength {
		return r.fault("expected at most %s, got %d", schemaMany(n.maxLength, "character"), size)
	}
	if n.pattern != nil && !r.matches(n.pattern, s) {
		return r.fault("expected a match of %s, got %s", quoteClip(n.pattern.text), v.brief())
	}
	return nil
}

func (r *schemaRun) matches(p *schemaPattern, s string) bool {
	return r.spend(p.cost*(len(s)+1)) && p.re.MatchString(s)
}

// down evaluates a part of the value.
func (r *schemaRun) down(n *schemaNode, v *schemaValue, step string, seen *schemaSeen) error {
	refs := r.refs
	r.refs = 0
	r.path = append(r.path, step)
	err := r.eval(n, v, seen)
	r.path = r.path[:len(r.path)-1]
	r.refs = refs
	return err
}

func (r *schemaRun) item(n *schemaNode, v *schemaValue, i int) error {
	step := ""
	if !r.quiet {
		step = "[" + strconv.Itoa(i) + "]"
	}
	return r.down(n, &v.items[i], step, nil)
}

func (r *schemaRun) array(n *schemaNode, v *schemaValue, seen *schemaSeen) error {
	size := len(v.items)
	if n.minItems >= 0 && size < n.minItems {
		return r.fault("expected at least %s, got %d", schemaMany(n.minItems, "item"), size)
	}
	if n.maxItems >= 0 && size > n.maxItems {
		return r.fault("expected at most %s, got %d", schemaMany(n.maxItems, "item"), size)
	}
	if n.unique {
		if err := r.distinct(v); err != nil {
			return err
		}
	}
	for i := range min(size, len(n.prefix)) {
		if err := r.item(n.prefix[i], v, i); err != nil {
			return err
		}
	}
	if seen != nil {
		seen.upTo = max(seen.upTo, len(n.prefix))
	}
	if n.items != nil {
		for i := len(n.prefix); i < size; i++ {
			if err := r.item(n.items, v, i); err != nil {
				return err
			}
		}
		if seen != nil {
			seen.allItems = true
		}
	}
	return r.contains(n, v, seen)
}

func (r *schemaRun) distinct(v *schemaValue) error {
	if !r.spend(len(v.raw)) {
		return r.broken
	}
	at := make(map[string]int, len(v.items))
	for i := range v.items {
		key := string(v.items[i].normal(nil))
		if first, ok := at[key]; ok {
			return r.fault("expected items that differ, got the same at %d and %d", first, i)
		}
		at[key] = i
	}
	return nil
}

func (r *schemaRun) contains(n *schemaNode, v *schemaValue, seen *schemaSeen) error {
	if n.contains == nil {
		return nil
	}
	least, found := 1, 0
	if n.minContains >= 0 {
		least = n.minContains
	}
	for i := range v.items {
		if r.try(func() error { return r.item(n.contains, v, i) }) {
			found++
			if r.schema.draft >= schemaDraft2020 {
				seen.item(i)
			}
		}
		if r.broken != nil {
			return r.broken
		}
	}
	if found < least {
		return r.fault("expected at least %s of the kind that contains names, got %d", schemaMany(least, "item"), found)
	}
	if n.maxContains >= 0 && found > n.maxContains {
		return r.fault("expected at most %s of the kind that contains names, got %d", schemaMany(n.maxContains, "item"), found)
	}
	return nil
}

// try evaluates without words.
func (r *schemaRun) try(eval func() error) bool {
	quiet := r.quiet
	r.quiet = true
	err := eval()
	r.quiet = quiet
	return err == nil
}

func (r *schemaRun) object(n *schemaNode, v *schemaValue, seen *schemaSeen) error {
	size := len(v.items)
	if n.minProps >= 0 && size < n.minProps {
		return r.fault("expected at least %s, got %d", schemaMany(n.minProps, "property"), size)
	}
	if n.maxProps >= 0 && size > n.maxProps {
		return r.fault("expected at most %s, got %d", schemaMany(n.maxProps, "property"), size)
	}
	if !r.spend(len(n.required)) {
		return r.broken
	}
	for _, name := range n.required {
		if v.member(name) == nil {
			return r.missing(n, name)
		}
	}
	for _, d := range n.dependentRequired {
		if v.member(d.name) == nil {
			continue
		}
		if !r.spend(len(d.required)) {
			return r.broken
		}
		for _, name := range d.required {
			if v.member(name) == nil {
				return r.fault("missing property %s, which %s asks for", quoteClip(name), quoteClip(d.name))
			}
		}
	}
	for i := range v.items {
		if err := r.property(n, &v.items[i], seen); err != nil {
			return err
		}
	}
	if seen != nil && n.additional != nil {
		seen.all = true
	}
	for _, d := range n.dependentSchemas {
		if v.member(d.name) == nil {
			continue
		}
		if err := r.eval(d.node, v, seen); err != nil {
			return err
		}
	}
	return nil
}

// missing names an absent required property and what it should be.
func (r *schemaRun) missing(n *schemaNode, name string) error {
	if p := n.properties[name]; p != nil && p.types != 0 {
		return r.fault("missing property %s (%s)", quoteClip(name), schemaTypeNames(p.types))
	}
	return r.fault("missing property %s", quoteClip(name))
}

func (r *schemaRun) property(n *schemaNode, m *schemaValue, seen *schemaSeen) error {
	if n.names != nil {
		name := &schemaValue{kind: schemaString, raw: appendJSONString(nil, m.name)}
		if err := r.eval(n.names, name, nil); err != nil {
			if r.quiet || r.broken != nil {
				return err
			}
			return r.fault("name of property %s: %v", quoteClip(m.name), err)
		}
	}
	step := m.name
	if strings.HasPrefix(step, "[") || step == "" {
		step = "\x00" + step // no item
	}
	known := false
	if p := n.properties[m.name]; p != nil {
		known = true
		if err := r.down(p, m, step, nil); err != nil {
			return err
		}
	}
	for _, p := range n.patternProperties {
		if !r.matches(p.pattern, m.name) {
			if r.broken != nil {
				return r.broken
			}
			continue
		}
		known = true
		if err := r.down(p.node, m, step, nil); err != nil {
			return err
		}
	}
	if known {
		seen.member(m.name)
		return nil
	}
	if n.additional == nil {
		return nil
	}
	if n.additional.refuse {
		return r.fault("unknown property %s%s", quoteClip(m.name), schemaKnown(n.properties))
	}
	return r.down(n.additional, m, step, nil)
}

// combine evaluates the subschemas that look at the same value.
func (r *schemaRun) combine(n *schemaNode, v *schemaValue, seen *schemaSeen) error {
	if n.ref != nil {
		if r.refs++; r.refs > schemaMaxRefs {
			r.broken = errorf("more than %d references of the schema follow one another", schemaMaxRefs)
			return r.broken
		}
		err := r.eval(n.ref, v, seen)
		r.refs--
		if err != nil {
			return err
		}
	}
	for _, sub := range n.all {
		if err := r.eval(sub, v, seen); err != nil {
			return err
		}
	}
	if n.any != nil {
		if err := r.anyOf(n.any, v, seen); err != nil {
			return err
		}
	}
	if n.one != nil {
		if err := r.oneOf(n.one, v, seen); err != nil {
			return err
		}
	}
	if n.not != nil {
		if r.try(func() error { return r.eval(n.not, v, nil) }) {
			return r.fault("expected something else than %s, which not excludes", v.brief())
		}
		if r.broken != nil {
			return r.broken
		}
	}
	if n.condition == nil {
		return nil
	}
	branch := n.alternative
	if ok, looked := r.branch(n.condition, v, seen); ok {
		branch = n.consequence
		seen.add(looked)
	}
	if r.broken != nil || branch == nil {
		return r.broken
	}
	return r.eval(branch, v, seen)
}

// branch evaluates an alternative without words; what it looked at counts only if it fits.
func (r *schemaRun) branch(n *schemaNode, v *schemaValue, seen *schemaSeen) (bool, *schemaSeen) {
	var own *schemaSeen
	if seen != nil {
		own = &schemaSeen{}
	}
	return r.try(func() error { return r.eval(n, v, own) }), own
}

func (r *schemaRun) anyOf(list []*schemaNode, v *schemaValue, seen *schemaSeen) error {
	fits := false
	for _, sub := range list {
		ok, looked := r.branch(sub, v, seen)
		if r.broken != nil {
			return r.broken
		}
		if ok {
			fits = true
			if seen == nil {
				return nil
			}
			seen.add(looked)
		}
	}
	if fits {
		return nil
	}
	return r.noneOf(list, v)
}

func (r *schemaRun) oneOf(list []*schemaNode, v *schemaValue, seen *schemaSeen) error {
	first := -1
	for i, sub := range list {
		ok, looked := r.branch(sub, v, seen)
		if r.broken != nil {
			return r.broken
		}
		if !ok {
			continue
		}
		if first >= 0 {
			return r.fault("expected exactly one of %d alternatives, got one that fits number %d and number %d", len(list), first+1, i+1)
		}
		first = i
		seen.add(looked)
	}
	if first < 0 {
		return r.noneOf(list, v)
	}
	return nil
}

// noneOf says why the first alternatives do not fit, each from this value on.
func (r *schemaRun) noneOf(list []*schemaNode, v *schemaValue) error {
	if r.quiet {
		return errSchemaMismatch
	}
	var why []string
	path := r.path
	r.path = nil
	for _, sub := range list[:min(len(list), schemaBranches)] {
		if err := r.eval(sub, v, nil); err != nil {
			why = append(why, clip(err.Error(), 160))
		}
	}
	r.path = path
	if r.broken != nil {
		return r.broken
	}
	if len(why) < len(list) {
		why = append(why, "…")
	}
	return r.fault("none of %d alternatives fits: %s", len(list), strings.Join(why, "; "))
}

func (r *schemaRun) unevaluated(n *schemaNode, v *schemaValue, seen *schemaSeen) error {
	if n.unevaluatedItems != nil && v.kind == schemaArray && !seen.allItems {
		for i := seen.upTo; i < len(v.items); i++ {
			if seen.items[i] {
				continue
			}
			if err := r.item(n.unevaluatedItems, v, i); err != nil {
				return err
			}
		}
		seen.allItems = true
	}
	if n.unevaluatedProperties != nil && v.kind == schemaObject && !seen.all {
		for i := range v.items {
			m := &v.items[i]
			if seen.members[m.name] {
				continue
			}
			if n.unevaluatedProperties.refuse {
				return r.fault("unknown property %s", quoteClip(m.name))
			}
			if err := r.down(n.unevaluatedProperties, m, "\x00"+m.name, nil); err != nil {
				return err
			}
		}
		seen.all = true
	}
	return nil
}

func schemaTypeNames(set schemaKind) string {
	var out []string
	for _, name := range [...]string{"object", "array", "string", "number", "integer", "boolean", "null"} {
		if kind, _ := schemaTypeOf(name); set&kind != 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, " or ")
}

// schemaMany puts a count before its noun.
func schemaMany(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case noun == "property":
		return strconv.Itoa(n) + " properties"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// schemaKnown lists the properties that would have been known.
func schemaKnown(properties map[string]*schemaNode) string {
	if len(properties) == 0 || len(properties) > 12 {
		return ""
	}
	return " (known: " + clip(visibleKey(strings.Join(slices.Sorted(maps.Keys(properties)), ", ")), 200) + ")"
}
