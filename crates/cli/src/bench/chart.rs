//! Charts as SVG text: bars of ratios for a group of rows, curves of time against size.

use std::fmt::Write;

use super::outcome::{Outcome, Side};

/// Colours of the contestants, in the order of their first appearance.
const COLOURS: [&str; 6] = ["#4e79a7", "#f28e2b", "#76b7b2", "#b07aa1", "#9c755f", "#bab0ac"];

/// Ratios beyond this are drawn up to here, with their number beside them.
const CEILING: f64 = 8.0;

const LABELS: f64 = 320.0;
const PLOT: f64 = 480.0;
const BAR: f64 = 11.0;

fn head(svg: &mut String, width: f64, height: f64, title: &str) {
    // Writing to a string does not fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"14\">{title}</text>\n"
    );
}

fn colour(name: &str, names: &mut Vec<String>) -> &'static str {
    let known = names.iter().position(|other| other == name);
    let index = known.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    COLOURS[index % COLOURS.len()]
}

/// A group of rows: for each peer a bar as long as its time over ours. Past the black line at 1 we
/// are faster; the red mark is the target.
pub(crate) fn bars(group: &str, outcomes: &[&Outcome]) -> String {
    let shown = |outcome: &&Outcome| {
        let peers = outcome.contestants.iter();
        peers.filter(|peer| matches!(peer.side, Side::Python | Side::Rust)).count().max(1)
    };
    let lines: usize = outcomes.iter().map(shown).sum();
    let height = 70.0 + lines as f64 * BAR + outcomes.len() as f64 * 6.0;
    let (mut svg, mut names) = (String::new(), Vec::new());
    head(&mut svg, LABELS + PLOT + 60.0, height, &format!("{group}: time of the peer over ours"));
    let x = |ratio: f64| LABELS + ratio.min(CEILING) / CEILING * PLOT;
    for mark in 0..=CEILING as usize {
        let (at, stroke) = (x(mark as f64), if mark == 1 { "black" } else { "#dddddd" });
        let _ = writeln!(
            svg,
            "<line x1=\"{at}\" x2=\"{at}\" y1=\"46\" y2=\"{0}\" stroke=\"{stroke}\"/>\
             <text x=\"{at}\" y=\"42\" text-anchor=\"middle\">{mark}</text>",
            height - 10.0
        );
    }
    let mut y = 54.0;
    for outcome in outcomes {
        let top = y;
        let _ = writeln!(svg, "<text x=\"10\" y=\"{}\">{}</text>", y + 9.0, outcome.row);
        for peer in &outcome.contestants {
            if !matches!(peer.side, Side::Python | Side::Rust) {
                continue;
            }
            let (ratio, fill) = (outcome.ratio(peer), colour(&peer.name, &mut names));
            let _ = writeln!(
                svg,
                "<rect x=\"{LABELS}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"{fill}\"/>\
                 <text x=\"{:.1}\" y=\"{}\" font-size=\"9\">{ratio:.2}</text>",
                x(ratio) - LABELS,
                BAR - 2.0,
                x(ratio) + 3.0,
                y + 8.0
            );
            y += BAR;
        }
        y = y.max(top + BAR);
        let at = x(outcome.target.ratio);
        let _ = writeln!(
            svg,
            "<line x1=\"{at}\" x2=\"{at}\" y1=\"{top}\" y2=\"{y}\" stroke=\"#e15759\" stroke-width=\"2\"/>"
        );
        y += 6.0;
    }
    legend(&mut svg, &names, 28.0);
    svg.push_str("</svg>\n");
    svg
}

fn legend(svg: &mut String, names: &[String], y: f64) {
    for (index, name) in names.iter().enumerate() {
        let (at, fill) = (LABELS + index as f64 * 110.0, COLOURS[index % COLOURS.len()]);
        let _ = writeln!(
            svg,
            "<rect x=\"{at}\" y=\"{}\" width=\"9\" height=\"9\" fill=\"{fill}\"/>\
             <text x=\"{}\" y=\"{y}\">{name}</text>",
            y - 9.0,
            at + 13.0
        );
    }
}

/// A curve's name and its points.
pub(crate) type Curve = (String, Vec<(f64, f64)>);

/// Curves over two logarithmic axes.
pub(crate) fn curves(title: &str, x_label: &str, y_label: &str, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.1);
    let span = |pick: fn(&(f64, f64)) -> f64| {
        let logs = points().map(|point| pick(point).log10());
        let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| {
            (low.min(log), high.max(log))
        });
        (low.floor(), high.ceil().max(low.floor() + 1.0))
    };
    let ((x0, x1), (y0, y1)) = (span(|point| point.0), span(|point| point.1));
    let (left, top, width, height) = (60.0, 40.0, 640.0, 420.0);
    let x = |value: f64| left + (value.log10() - x0) / (x1 - x0) * width;
    let y = |value: f64| top + height - (value.log10() - y0) / (y1 - y0) * height;
    let (mut svg, mut names) = (String::new(), Vec::new());
    head(&mut svg, left + width + 30.0, top + height + 50.0, title);
    for power in x0 as i32..=x1 as i32 {
        let at = x(10f64.powi(power));
        let bottom = top + height;
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top}\" y2=\"{bottom}\" stroke=\"#dddddd\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">1e{power}</text>",
            bottom + 14.0
        );
    }
    for power in y0 as i32..=y1 as i32 {
        let at = y(10f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{at:.1}\" text-anchor=\"end\">1e{power}</text>",
            left + width,
            left - 6.0
        );
    }
    for (name, points) in curves {
        let stroke = colour(name, &mut names);
        let path: Vec<String> =
            points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"1.5\"/>",
            path.join(" ")
        );
    }
    legend(&mut svg, &names, 30.0);
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{x_label}</text>\
         <text x=\"10\" y=\"{}\">{y_label}</text>\n</svg>",
        left + width / 2.0,
        top + height + 34.0,
        top - 6.0
    );
    svg
}

#[cfg(test)]
mod tests {
    #[test]
    fn curves_stay_inside_the_picture() {
        let curve = ("add".to_owned(), vec![(10.0, 1e-6), (1e6, 1e-2)]);
        let svg = super::curves("time", "n", "s", &[curve]);
        assert!(svg.contains("points=\"60.0,460.0 700.0,40.0\""), "{svg}");
    }
}
