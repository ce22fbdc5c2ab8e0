// This file says what the policy would do with a call of any tool, native or bridged, through the same judges that a real call passes. It
// runs nothing, asks nobody and writes nothing down.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
)

// foresee judges a call that is not made. Arguments that are no JSON object are an *rpcError, as in a call.
func (t *toolbox) foresee(ctx context.Context, c toolCall) (policyForecast, error) {
	if len(bytes.TrimSpace(c.Args)) == 0 {
		c.Args = json.RawMessage("{}")
	}
	if _, err := jsonObject(c.Args); err != nil {
		return policyForecast{}, &rpcError{Code: codeInvalidParams, Message: fmt.Sprintf("arguments of %s: %v", visibleLine(c.Name), err)}
	}
	digest, err := payloadDigest(c.Name, c.Args)
	if err != nil {
		return policyForecast{}, errorf("arguments of %s: %w", visibleLine(c.Name), err)
	}
	e := t.byName[c.Name]
	if e == nil {
		if t.bridge != nil {
			if f, known, err := t.bridge.foresee(ctx, c); known || err != nil {
				return f, err
			}
		}
		return t.policy.refuse(c.Name, digest, ruleUnknown, "there is no tool of that name", "tool_search finds tools by what they do"), nil
	}
	if e.tool.forecast != nil {
		return e.tool.forecast(ctx, c)
	}
	if d := e.needsPerson(c); d.Rule != "" {
		return t.policy.refuse(c.Name, digest, d.Rule, d.Reason, d.Hint), nil
	}
	c.Args = plainNumbers(c.Args)
	return t.policy.foresee(e.request(c, digest)), nil
}
