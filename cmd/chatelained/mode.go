package main

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Mode names how far agents and daemon are apart (docs/threat-model.md). It is
// isolated only where no user whom the operator socket admits is an agent's. That
// a person who becomes the daemon's user has agents too, only the doctor sees.
func (d *daemon) Mode() string {
	if slices.ContainsFunc(operatorUsers(), d.admitAgent) {
		return "same-user"
	}
	return "isolated"
}

// modeGauge tells the mode to who watches many machines.
func modeGauge(mode string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "chatelaine_mode", Help: "1, with how far agents and daemon are apart: isolated or same-user.",
		ConstLabels: prometheus.Labels{"mode": mode},
	}, func() float64 { return 1 })
}
