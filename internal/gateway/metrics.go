package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"chatelaine/internal/validate"
)

// Metrics are the numbers of the line. Every label comes from a closed set: the
// names of loaded contracts, the codes of the API and the layers of the
// boundary; nothing a caller or an upstream wrote.
type Metrics struct {
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	rejected *prometheus.CounterVec
	differ   *prometheus.CounterVec
	refused  *prometheus.CounterVec
	echoes   prometheus.Counter
	panics   prometheus.Counter
	reloads  *prometheus.CounterVec

	exchanges *prometheus.CounterVec
	exchanged *prometheus.HistogramVec
}

// NewMetrics registers the line's metrics with r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chatelaine_calls_total", Help: "Calls that ended, by action and code (OK for a success)."}, []string{"action", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "chatelaine_upstream_seconds", Help: "Time from connecting to the whole answer of one attempt, by action and kind of step.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)}, []string{"action", "step"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chatelaine_rejections_total", Help: "Answers refused at the boundary, by action and layer."}, []string{"action", "layer"}),
		differ: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chatelaine_engines_differ_total", Help: "Answers on which the two schema engines disagreed; each was refused."}, []string{"action"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chatelaine_refusals_total", Help: "Calls refused before they were claimed, by code."}, []string{"code"}),
		echoes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "chatelaine_credential_echoes_total", Help: "Answers that held the credential they were asked with; each was refused."}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "chatelaine_panics_total", Help: "Panics caught in a call."}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chatelaine_reloads_total", Help: "Reloads of contracts and targets, by result."}, []string{"result"}),
	}
	m.exchanges = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chatelaine_token_exchanges_total", Help: "Requests in which a secret was exchanged for a token, by kind of identity and result (OK or a code)."}, []string{"kind", "result"})
	m.exchanged = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "chatelaine_token_exchange_seconds", Help: "Time from connecting to the whole answer of one such request, by kind of identity.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)}, []string{"kind"})
	r.MustRegister(m.exchanges, m.exchanged)
	r.MustRegister(m.calls, m.seconds, m.rejected, m.differ, m.refused, m.echoes, m.panics, m.reloads)
	return m
}

func (m *Metrics) reject(action string, r *validate.Rejection) {
	m.rejected.WithLabelValues(action, r.Layer).Inc()
	if r.EnginesDiffer {
		m.differ.WithLabelValues(action).Inc()
	}
}

// RegisterState adds the gauges that are read when they are asked for.
func (g *Gateway) RegisterState(r prometheus.Registerer) {
	gauge := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	gauge("chatelaine_vault_open", "1 while the vault is open.", func() float64 { return b2f(g.vault.Open() == nil) })
	gauge("chatelaine_record_latched", "1 once the record refused a write; nothing is sent then.", func() float64 { return b2f(g.log.State().Latched != nil) })
	gauge("chatelaine_record_next_sequence", "Sequence number the next record will get.", func() float64 { return float64(g.log.State().NextSeq) })
	gauge("chatelaine_calls_running", "Calls between arming and answer.", func() float64 { return float64(g.places.count()) })
	gauge("chatelaine_calls_polling", "Calls whose poll goes on, or whose reconcile waits.", func() float64 { return float64(g.lives.held()) })
	gauge("chatelaine_approvals_open", "Cards that wait for a person.", func() float64 { return float64(g.OpenCards()) })
	gauge("chatelaine_contracts_loaded", "Contracts in force.", func() float64 { return float64(len(g.Set().Contracts())) })
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
