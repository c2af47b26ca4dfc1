//! Contestants from Python: a child process that runs `bench/peers.py` and takes orders by line.
//!
//! `row NAME` makes the operands and answers which contestants know the row; `time NAME SECONDS`
//! answers how long one call takes, timed over a window of that length. So that everything is
//! decided here (the rounds, the order, the verdict) and Python only calls.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The child and the two ends of the conversation.
pub(crate) struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts `python script`.
    pub(crate) fn start(python: &Path, script: &Path, threads: usize) -> io::Result<Worker> {
        let mut child = Command::new(python)
            .arg(script)
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the child has no pipes"));
        };
        Ok(Worker { child, orders, answers: BufReader::new(answers) })
    }

    fn ask(&mut self, order: &str) -> io::Result<String> {
        writeln!(self.orders, "{order}")?;
        self.orders.flush()?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            return Err(io::Error::other(format!("bench/peers.py ended at {order:?}")));
        }
        Ok(answer.trim_end().to_owned())
    }

    /// The libraries that it has, each with its version, in words for the head of a report.
    pub(crate) fn versions(&mut self) -> io::Result<String> {
        self.ask("versions")
    }

    /// Makes the operands of a row; gives the contestants that know it.
    pub(crate) fn row(&mut self, name: &str) -> io::Result<Vec<String>> {
        Ok(self.ask(&format!("row {name}"))?.split_whitespace().map(str::to_owned).collect())
    }

    /// Seconds for one call of a contestant on the last row.
    pub(crate) fn time(&mut self, contestant: &str, length: f64) -> io::Result<f64> {
        let answer = self.ask(&format!("time {contestant} {length}"))?;
        answer.parse().map_err(|_| io::Error::other(format!("bench/peers.py: {answer}")))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The end of its orders ends the child; nothing is lost if it has ended already.
        let _ = writeln!(self.orders, "end");
        let _ = self.child.wait();
    }
}
