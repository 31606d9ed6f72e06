package main

import "slices"

// figures are the columns of the tables. All but the first and the last are for one record.
type figures struct {
	recordsPerSecond      float64
	cpu                   float64 // microseconds of the client
	allocations           float64
	requests              float64
	writeUnits, readUnits float64
	resident              float64 // the most memory of the client so far, in MiB
}

func figuresOf(u usage, l load, records int) figures {
	n := float64(records)
	return figures{
		recordsPerSecond: n / u.Seconds,
		cpu:              u.CPU / n * 1e6,
		allocations:      float64(u.Allocations) / n,
		requests:         float64(l.Requests) / n,
		writeUnits:       l.WriteUnits / n,
		readUnits:        l.ReadUnits / n,
		resident:         float64(u.Resident) / (1 << 20),
	}
}

// medians returns the median of each figure.
func medians(samples []figures) figures {
	of := func(figure func(figures) float64) float64 {
		values := make([]float64, len(samples))
		for i, s := range samples {
			values[i] = figure(s)
		}
		slices.Sort(values)
		n := len(values)
		return (values[(n-1)/2] + values[n/2]) / 2
	}
	return figures{
		recordsPerSecond: of(func(f figures) float64 { return f.recordsPerSecond }),
		cpu:              of(func(f figures) float64 { return f.cpu }),
		allocations:      of(func(f figures) float64 { return f.allocations }),
		requests:         of(func(f figures) float64 { return f.requests }),
		writeUnits:       of(func(f figures) float64 { return f.writeUnits }),
		readUnits:        of(func(f figures) float64 { return f.readUnits }),
		resident:         of(func(f figures) float64 { return f.resident }),
	}
}
