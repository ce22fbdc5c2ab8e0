package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// rankTask is one line of testdata/retrieval/queries.jsonl.
type rankTask struct {
	ID, Query  string
	Relevant   []string
	Equivalent map[string][]string
}

// rankLines reads a file of testdata/retrieval, one value a line.
func rankLines[T any](t testing.TB, name string) []T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "retrieval", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for line := range bytes.Lines(b) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, v)
	}
	return out
}

// rankPool gives the benchmark's tools and their ids.
func rankPool(t testing.TB) (docs []rankDoc, ids []string) {
	t.Helper()
	type line struct {
		Server, Tool, Description string
		Schema                    json.RawMessage
	}
	for _, l := range rankLines[line](t, "tools.jsonl") {
		docs = append(docs, rankDoc{Server: l.Server, Name: l.Tool, Description: l.Description, Schema: l.Schema})
		ids = append(ids, l.Server+"/"+l.Tool)
	}
	return docs, ids
}

// rankFigures are means over all tasks.
type rankFigures struct{ R5, R10, R20, NDCG10, All10 float64 }

// rankMeasure scores a ranking by the metrics of testdata/retrieval/README.md.
func rankMeasure(tasks []rankTask, rank func(query string) []string) rankFigures {
	var sum rankFigures
	for _, task := range tasks {
		list, found := rank(task.Query), map[string]bool{}
		hits, dcg := [21]float64{}, 0.0
		for i := 1; i <= 20; i++ {
			hits[i] = hits[i-1]
			if i > len(list) || slices.Contains(list[:i-1], list[i-1]) {
				continue
			}
			for _, want := range task.Relevant {
				if !found[want] && (list[i-1] == want || slices.Contains(task.Equivalent[want], list[i-1])) {
					found[want] = true
					hits[i]++
					if i <= 10 {
						dcg += 1 / math.Log2(float64(i)+1)
					}
					break
				}
			}
		}
		n, ideal := float64(len(task.Relevant)), 0.0
		for i := range min(len(task.Relevant), 10) {
			ideal += 1 / math.Log2(float64(i)+2)
		}
		sum.R5 += hits[5] / n
		sum.R10 += hits[10] / n
		sum.R20 += hits[20] / n
		sum.NDCG10 += dcg / ideal
		if hits[10] == n {
			sum.All10++
		}
	}
	n := float64(len(tasks))
	return rankFigures{sum.R5 / n, sum.R10 / n, sum.R20 / n, sum.NDCG10 / n, sum.All10 / n}
}

// The order of the pool and its reverse have known figures, so the measure itself is held first. Then the ranking that chooses
// the tools of every message has to find those that a person used for real tasks (F18).
func TestF18Retrieval(t *testing.T) {
	t.Parallel()
	docs, ids := rankPool(t)
	tasks := rankLines[rankTask](t, "queries.jsonl")
	if len(docs) != 527 || len(tasks) != 47 {
		t.Fatalf("%d tools and %d tasks, want 527 and 47", len(docs), len(tasks))
	}
	reverse := slices.Clone(ids)
	slices.Reverse(reverse)
	for _, tc := range []struct {
		name string
		list []string
		want rankFigures
	}{
		{"in order", ids, rankFigures{R5: 0.0089, R10: 0.0195, R20: 0.0284, NDCG10: 0.0116}},
		{"reversed", reverse, rankFigures{R5: 0.0567, R10: 0.0727, R20: 0.0887, NDCG10: 0.0444}},
	} {
		got := rankMeasure(tasks, func(string) []string { return tc.list })
		for _, f := range [][2]float64{{got.R5, tc.want.R5}, {got.R10, tc.want.R10}, {got.R20, tc.want.R20}, {got.NDCG10, tc.want.NDCG10}} {
			if math.Abs(f[0]-f[1]) > 0.00005 {
				t.Errorf("the measure, %s: got %.4f, want %.4f", tc.name, got, tc.want)
				break
			}
		}
	}
	ix := newRankIndex(docs)
	got := rankMeasure(tasks, func(query string) []string {
		hits, _ := ix.scan(query).top(20, nil)
		list := make([]string, len(hits))
		for i, h := range hits {
			list[i] = ids[h.Doc]
		}
		return list
	})
	t.Logf("recall@5 %.3f, recall@10 %.3f, recall@20 %.3f, nDCG@10 %.3f, all@10 %.3f", got.R5, got.R10, got.R20, got.NDCG10, got.All10)
	if got.R10 < 0.65 || got.NDCG10 < 0.54 {
		t.Errorf("recall@10 %.3f, want 0.65; nDCG@10 %.3f, want 0.54", got.R10, got.NDCG10)
	}
}
