// This file holds tai's own tool schemas to the keywords it checks, so that a slip of the pen in one shows when the tool is
// registered. It knows no value; foreign schemas are read by schema.go, which passes over what it does not know.
package main

import (
	"encoding/json"
	"strconv"
)

// schemaPlace says what a keyword holds.
type schemaPlace int

const (
	schemaHoldsValue schemaPlace = iota // a constant or a note
	schemaHoldsOne                      // a schema
	schemaHoldsList                     // an array of schemas
	schemaHoldsNamed                    // an object of schemas
)

//go:noinline for size: it is called in many places
func schemaPlaceOf(keyword string) (schemaPlace, bool) {
	switch keyword {
	case "$schema", "$id", "$ref", "$anchor", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"format", "contentEncoding", "contentMediaType", "type", "const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains",
		"minProperties", "maxProperties", "required", "dependentRequired":
		return schemaHoldsValue, true
	case "items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties":
		return schemaHoldsOne, true
	case "prefixItems", "allOf", "anyOf", "oneOf":
		return schemaHoldsList, true
	case "$defs", "properties", "patternProperties", "dependentSchemas":
		return schemaHoldsNamed, true
	}
	return 0, false
}

// strictSchemaKeywords refuses a schema with a keyword that 2020-12 does not have or tai does not check, at any depth.
func strictSchemaKeywords(raw json.RawMessage) error {
	v, err := parseSchemaValue(raw)
	if err != nil {
		return errorf("schema: %w", err)
	}
	return strictSchema(v, "#")
}

func strictSchema(v *schemaValue, at string) error {
	if v.kind != schemaObject {
		return nil // a boolean, or a fault that compileSchema names
	}
	for i := range v.items {
		k := &v.items[i]
		place, ok := schemaPlaceOf(k.name)
		if !ok {
			return errorf("schema: unknown keyword %s at %s", quoteClip(k.name), quoteClip(at))
		}
		below := at + "/" + k.name
		switch place {
		case schemaHoldsOne:
			if err := strictSchema(k, below); err != nil {
				return err
			}
		case schemaHoldsList, schemaHoldsNamed:
			for j := range k.items {
				name := k.items[j].name
				if place == schemaHoldsList {
					name = strconv.Itoa(j)
				}
				if err := strictSchema(&k.items[j], below+"/"+name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
