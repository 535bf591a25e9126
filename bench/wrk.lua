-- Prints wrk's totals as one line of JSON. Only `done` is set: nothing runs per request.
done = function(summary, latency, requests)
    local errors = summary.errors
    print(string.format(
        '{"requests": %d, "duration_us": %d, "bad_status": %d, "broken": %d, "p50_us": %d, "p99_us": %d}',
        summary.requests, summary.duration, errors.status,
        errors.connect + errors.read + errors.write + errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
