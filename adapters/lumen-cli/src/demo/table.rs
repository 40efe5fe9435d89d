//! The demo's table.

use std::fmt::Write as _;
use std::time::Duration;

use super::client::Measured;

/// Renders what was measured, a row for each kind of request and carrier. `saved` is against the first carrier.
pub(crate) fn render(carriers: &[(&str, Vec<Measured>)]) -> String {
    let mut out = String::from(
        "One client, `lumen wrap` and a small MCP server; bytes are those on the pipe to `lumen wrap`.\n\n",
    );
    let head = ["request", "carrier", "messages", "bytes out", "bytes in", "saved", "p50 us", "p99 us"];
    row(&mut out, head.map(String::from));
    let first = carriers.first().map(|(_, measured)| measured.as_slice()).unwrap_or_default();
    for (kind, reference) in first.iter().enumerate() {
        for (carrier, measured) in carriers {
            let Some(measured) = measured.get(kind) else { continue };
            let mut times = measured.times.clone();
            times.sort_unstable();
            row(
                &mut out,
                [
                    measured.name.to_owned(),
                    (*carrier).to_owned(),
                    // A request and its answer.
                    (u64::from(measured.count) * 2).to_string(),
                    measured.sent.to_string(),
                    measured.received.to_string(),
                    saved(reference, measured),
                    micros(percentile(&times, 50)),
                    micros(percentile(&times, 99)),
                ],
            );
        }
    }
    out.push_str(
        "\nThe bytes of negotiating are with the first request. LUMEN shortens keys, numbers and common words; text\n\
         stays text, so a result that is one long string is not shorter. Round trips are mostly the time it takes to wake\n\
         three processes, whatever they say.\n",
    );
    out
}

/// The share of the reference's bytes, both ways together, that was not needed.
fn saved(reference: &Measured, measured: &Measured) -> String {
    let bytes = |measured: &Measured| (measured.sent + measured.received) as f64;
    format!("{:.1} %", 100.0 * (1.0 - bytes(measured) / bytes(reference)))
}

fn row(out: &mut String, [request, carrier, cells @ ..]: [String; 8]) {
    let _ = write!(out, "{request:<13} {carrier:<9}");
    for cell in cells {
        let _ = write!(out, " {cell:>10}");
    }
    out.push('\n');
}

/// The value below which `percent` of the sorted times lie (nearest rank).
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn micros(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        assert_eq!(percentile(&times, 50), Duration::from_micros(100));
        assert_eq!(percentile(&times, 99), Duration::from_micros(198));
        assert_eq!(percentile(&times[..1], 99), Duration::from_micros(1));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn a_row_for_each_kind_and_carrier() {
        let measured =
            |name| Measured { name, count: 1, sent: 5, received: 6, times: vec![Duration::from_micros(7)] };
        let half = |name| Measured { sent: 2, received: 3, ..measured(name) };
        let text = render(&[("JSON-RPC", vec![measured("a")]), ("LUMEN", vec![half("a")])]);
        let rows: Vec<&str> = text.lines().filter(|line| line.ends_with("7.0        7.0")).collect();
        assert!(
            matches!(rows[..], [json, lumen] if json.contains(" 0.0 %") && lumen.contains(" 54.5 %")),
            "{text}"
        );
    }
}
