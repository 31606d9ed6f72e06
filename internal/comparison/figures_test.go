package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiguresOf(t *testing.T) {
	u := usage{Seconds: 2, CPU: 0.5, Allocations: 3000, Resident: 5 << 20}
	got := figuresOf(u, load{Requests: 500, WriteUnits: 2000, ReadUnits: 250}, 1000)
	want := figures{
		recordsPerSecond: 500, cpu: 500, allocations: 3, requests: 0.5, writeUnits: 2, readUnits: 0.25, resident: 5,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(figures{})); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

func TestMedians(t *testing.T) {
	samples := []figures{{1, 9, 5, 1, 1, 3, 2}, {2, 7, 4, 2, 1, 3, 9}, {9, 8, 6, 3, 1, 3, 4}}
	options := cmp.AllowUnexported(figures{})
	if diff := cmp.Diff(figures{2, 8, 5, 2, 1, 3, 4}, medians(samples), options); diff != "" {
		t.Errorf("of three (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(figures{1.5, 8, 4.5, 1.5, 1, 3, 5.5}, medians(samples[:2]), options); diff != "" {
		t.Errorf("of two (-want +got):\n%s", diff)
	}
}
