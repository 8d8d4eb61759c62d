// The Prometheus operator, by whose definitions tests/chart checks ServiceMonitor and PrometheusRule. Nothing is built.
module switchboard/hack/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
