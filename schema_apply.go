// This file reads the keywords of a schema that hold further schemas. It is the second half of schema.go.
package main

import "strconv"

// applicator reads the keywords that hold subschemas against the value or its parts.
func (c *schemaCompiler) applicator(n *schemaNode, v, whole *schemaValue, res *schemaResource) (err error) {
	switch v.name {
	case "allOf":
		var all []*schemaNode
		all, err = c.list(v, res)
		n.all = append(n.all, all...)
	case "anyOf":
		n.any, err = c.list(v, res)
	case "oneOf":
		n.one, err = c.list(v, res)
	case "not":
		n.not, err = c.compile(v, res)
	case "if":
		n.condition, err = c.compile(v, res)
	case "then":
		n.consequence, err = c.compile(v, res)
	case "else":
		n.alternative, err = c.compile(v, res)
	case "properties":
		var list []schemaNamedNode
		list, err = c.named(v, res)
		n.properties = make(map[string]*schemaNode, len(list))
		for _, p := range list {
			n.properties[p.name] = p.node
		}
	case "patternProperties":
		err = c.patterns(n, v, res)
	case "additionalProperties":
		n.additional, err = c.compile(v, res)
	case "propertyNames":
		n.names, err = c.compile(v, res)
	case "dependencies":
		err = c.dependencies(n, v, res)
	case "contains":
		n.contains, err = c.compile(v, res)
	case "items":
		if v.kind == schemaArray { // a tuple, as before 2020-12; some still write it without saying so
			n.prefix, err = c.list(v, res)
		} else {
			n.items, err = c.compile(v, res)
		}
	case "additionalItems":
		if items := whole.member("items"); items != nil && items.kind == schemaArray {
			n.items, err = c.compile(v, res)
		}
	case "prefixItems":
		if c.draft >= schemaDraft2020 {
			n.prefix, err = c.list(v, res)
		}
	default:
		if c.draft >= schemaDraft2019 {
			err = c.applicator2019(n, v, res)
		}
	}
	return err
}

func (c *schemaCompiler) applicator2019(n *schemaNode, v *schemaValue, res *schemaResource) (err error) {
	switch v.name {
	case "dependentRequired", "dependentSchemas":
		err = c.dependencies(n, v, res)
	case "unevaluatedProperties":
		n.unevaluatedProperties, err = c.compile(v, res)
	case "unevaluatedItems":
		n.unevaluatedItems, err = c.compile(v, res)
	}
	return err
}

func (c *schemaCompiler) list(v *schemaValue, res *schemaResource) ([]*schemaNode, error) {
	if v.kind != schemaArray || len(v.items) == 0 {
		return nil, c.fault("expected an array of schemas")
	}
	out := make([]*schemaNode, len(v.items))
	for i := range v.items {
		c.path = append(c.path, strconv.Itoa(i))
		n, err := c.compile(&v.items[i], res)
		if err != nil {
			return nil, err
		}
		c.path = c.path[:len(c.path)-1]
		out[i] = n
	}
	return out, nil
}

func (c *schemaCompiler) named(v *schemaValue, res *schemaResource) ([]schemaNamedNode, error) {
	if v.kind != schemaObject {
		return nil, c.fault("expected an object of schemas, not %s", v.brief())
	}
	out := make([]schemaNamedNode, len(v.items))
	for i := range v.items {
		c.path = append(c.path, v.items[i].name)
		n, err := c.compile(&v.items[i], res)
		if err != nil {
			return nil, err
		}
		c.path = c.path[:len(c.path)-1]
		out[i] = schemaNamedNode{v.items[i].name, n}
	}
	return out, nil
}

func (c *schemaCompiler) patterns(n *schemaNode, v *schemaValue, res *schemaResource) error {
	list, err := c.named(v, res)
	if err != nil {
		return err
	}
	for _, p := range list {
		pattern, err := c.regexp(p.name)
		if err != nil {
			return err
		}
		n.patternProperties = append(n.patternProperties, schemaPatternNode{pattern, p.node})
	}
	return nil
}

// dependencies reads dependentRequired, dependentSchemas and their common older form.
func (c *schemaCompiler) dependencies(n *schemaNode, v *schemaValue, res *schemaResource) error {
	if v.kind != schemaObject {
		return c.fault("expected an object, not %s", v.brief())
	}
	for i := range v.items {
		item := &v.items[i]
		if v.name == "dependentRequired" || v.name == "dependencies" && item.kind == schemaArray {
			names, err := c.texts(item)
			if err != nil {
				return err
			}
			n.dependentRequired = append(n.dependentRequired, schemaDependency{item.name, names})
			continue
		}
		c.path = append(c.path, item.name)
		node, err := c.compile(item, res)
		if err != nil {
			return err
		}
		c.path = c.path[:len(c.path)-1]
		n.dependentSchemas = append(n.dependentSchemas, schemaNamedNode{item.name, node})
	}
	return nil
}

func (c *schemaCompiler) regexp(text string) (*schemaPattern, error) {
	p, err := compileSchemaPattern(text)
	if err != nil {
		return nil, c.fault("%v", err)
	}
	if c.patternCost += p.cost; c.patternCost > schemaMaxPatterns {
		return nil, c.fault("patterns too large in all")
	}
	return p, nil
}
