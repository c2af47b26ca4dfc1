//! The keywords of every reduction, KeOps' among them, and their module-wide defaults.
//!
//! KeOps' options are taken where they mean something here and let pass where they do not, as
//! `docs/keops.md` lists; what would change the result unseen is an error.

use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tilework::Device;
use tilework::pairs::{Accuracy, Named, Options, Scheme, SumScheme};
use tilework_fork::ForkMutex;

use crate::args::register;
use crate::device;
use crate::errors::DeviceError;

/// What is shown of long work.
#[derive(Default)]
pub enum Shown {
    #[default]
    Nothing,
    /// A bar on stderr.
    Bar,
    /// A function of Python is told the fraction; it stops the work by returning False.
    Told(Py<PyAny>),
}

/// The keywords that were given; what was not is the module's, as it is when the work is done.
#[derive(Default)]
pub struct Settings {
    sums: Option<SumScheme>,
    /// That accumulators are not in float64, also where the module's are.
    never_double: bool,
    accuracy: Option<Accuracy>,
    scheme: Option<Scheme>,
    /// Where the work is done, if not where the arrays are.
    device: Option<Device>,
    progress: Option<Shown>,
    /// How many values are kept.
    pub k: Option<usize>,
    /// Whether to compute later.
    pub later: bool,
    /// Where the result is to be written.
    pub out: Option<Py<PyAny>>,
}

/// What a call takes that says nothing else.
#[derive(Clone, Copy)]
struct Defaults {
    sums: SumScheme,
    accuracy: Accuracy,
    scheme: Scheme,
    progress: bool,
}

static DEFAULTS: ForkMutex<Defaults> = ForkMutex::new(Defaults {
    sums: SumScheme::Blocks,
    accuracy: Accuracy::Declared,
    scheme: Scheme::Auto,
    progress: false,
});

fn chosen<T: Named>(option: &str, value: &Bound<'_, PyAny>) -> PyResult<T> {
    let name = value.cast::<PyString>().ok().map(|name| name.to_string());
    name.and_then(|name| T::named(&name)).ok_or_else(|| {
        let names: Vec<String> = T::NAMES.iter().map(|(name, _)| format!("{name:?}")).collect();
        let given = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
        PyValueError::new_err(format!("{option}={given} is none of {}", names.join(", ")))
    })
}

/// Keywords of KeOps that choose what is chosen here by itself.
const WITHOUT_MEANING: &[&str] =
    &["enable_chunks", "rec_multVar_highdim", "device_id", "dtype", "cuda_type", "optional_flags"];

impl Settings {
    /// The settings of a later call of what was made with these.
    pub fn for_a_call(&self, py: Python<'_>) -> Settings {
        let progress = self.progress.as_ref().map(|shown| match shown {
            Shown::Nothing => Shown::Nothing,
            Shown::Bar => Shown::Bar,
            Shown::Told(callback) => Shown::Told(callback.clone_ref(py)),
        });
        let out = self.out.as_ref().map(|out| out.clone_ref(py));
        Settings { progress, out, later: false, ..*self }
    }

    /// Takes one keyword; false if it is not one of those of reductions.
    pub fn take(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "accuracy" if !value.is_none() => self.accuracy = Some(chosen(name, value)?),
            "scheme" if !value.is_none() => self.scheme = Some(chosen(name, value)?),
            "sum_scheme" if !value.is_none() => {
                (self.sums, self.never_double) = (Some(chosen(name, value)?), false);
            }
            "progress" if !value.is_none() => {
                self.progress = Some(match value.extract::<bool>() {
                    Ok(true) => Shown::Bar,
                    Ok(false) => Shown::Nothing,
                    Err(_) if value.is_callable() => Shown::Told(value.clone().unbind()),
                    Err(_) => {
                        let message = "progress: True, False, or a function of the fraction done";
                        return Err(PyTypeError::new_err(message));
                    }
                });
            }
            "device" => {
                self.device = (!value.is_none()).then(|| device::parse(value)).transpose()?;
            }
            "call" => self.later = !value.is_truthy()?,
            "out" => self.out = (!value.is_none()).then(|| value.clone().unbind()),
            "use_double_acc" => self.accumulates_in_double(value.is_truthy()?),
            "dtype_acc" => match value.str()?.to_string_lossy().as_ref() {
                "float64" => self.accumulates_in_double(true),
                "float32" => self.accumulates_in_double(false),
                "auto" | "None" => {}
                "float16" => {
                    let message = "dtype_acc=\"float16\": sums are never in float16; those of halves are in float32";
                    return Err(PyValueError::new_err(message));
                }
                other => {
                    let message = format!("dtype_acc={other:?} is not \"float32\" or \"float64\"");
                    return Err(PyValueError::new_err(message));
                }
            },
            // Its approximations are those that we do by default, within their bounds.
            "use_fast_math" if !value.is_truthy()? => {
                self.accuracy = Some(Accuracy::Strict);
            }
            "backend" => self.backend(value)?,
            "ranges" if !value.is_none() => {
                let message = "ranges: block-sparse reductions are not supported yet; \
                               multiply by a mask, or reduce block by block and merge partials";
                return Err(PyNotImplementedError::new_err(message));
            }
            "accuracy" | "scheme" | "sum_scheme" | "progress" | "ranges" | "use_fast_math" => {}
            _ => return Ok(WITHOUT_MEANING.contains(&name)),
        }
        Ok(true)
    }

    /// KeOps' accumulators: in float64, or not, whatever the default is.
    fn accumulates_in_double(&mut self, double: bool) {
        self.never_double = !double;
        if double {
            self.sums = Some(SumScheme::Double);
        }
    }

    /// KeOps' backends: the scheme, and a card for arrays that are not on one.
    fn backend(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if value.is_none() {
            return Ok(());
        }
        let name: String = value.extract()?;
        match name.as_str() {
            "auto" | "CPU" => return Ok(()),
            // KeOps' 1D scheme; but who says no more means the card, and few rows are many times slower in one go.
            "GPU" => {}
            "GPU_1D" | "GPU_1D_device" | "GPU_1D_host" => {
                self.scheme = Some(Scheme::OneD);
            }
            "GPU_2D" | "GPU_2D_device" | "GPU_2D_host" => {
                self.scheme = Some(Scheme::TwoD);
            }
            _ => {
                let message = format!("backend={name:?} is not \"auto\", \"CPU\" or \"GPU...\"");
                return Err(PyValueError::new_err(message));
            }
        }
        let card = Device::parse("cuda").map_err(|why| {
            DeviceError::new_err(format!("backend={name:?}: there is no card: {why}"))
        })?;
        self.device = Some(card);
        Ok(())
    }

    /// Takes all keywords of a call that nothing else has taken, but those that mean nothing here.
    pub fn take_all(
        &mut self,
        operation: &str,
        keywords: Option<&Bound<'_, PyDict>>,
        without: &[&str],
        mut others: impl FnMut(&str, &Bound<'_, PyAny>) -> PyResult<bool>,
    ) -> PyResult<()> {
        let Some(keywords) = keywords else { return Ok(()) };
        let double = keywords.get_item("use_double_acc")?;
        let double = double.map(|value| value.is_truthy()).transpose()?;
        let dtype = keywords.get_item("dtype_acc")?.map(|value| value.str()).transpose()?;
        let dtype = dtype.filter(|dtype| dtype != "auto" && dtype != "None");
        if double == Some(true) && dtype.is_some() {
            let message = format!(
                "{operation}: the accumulator is given twice; use_double_acc is another word for \
                 dtype_acc=\"float64\""
            );
            return Err(PyTypeError::new_err(message));
        }
        for (name, value) in keywords.iter() {
            let name: String = name.extract()?;
            // As by default: what names a dtype says more.
            if name == "use_double_acc" && dtype.is_some() {
                continue;
            }
            let known = match without.contains(&&name[..]) {
                // What says nothing can be said anywhere.
                true => value.is_none() || (name == "call" && value.is_truthy()?),
                false => others(&name, &value)? || self.take(&name, &value)?,
            };
            if !known {
                let message = format!("{operation}: there is no keyword {name}");
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(())
    }

    /// What is shown, by default too.
    pub fn progress(&self) -> &Shown {
        static BAR: Shown = Shown::Bar;
        static NOTHING: Shown = Shown::Nothing;
        let default = || if DEFAULTS.lock().progress { &BAR } else { &NOTHING };
        self.progress.as_ref().unwrap_or_else(default)
    }

    /// The options of the core, without progress.
    pub fn options(&self) -> Options<'static> {
        let defaults = *DEFAULTS.lock();
        let sums = match self.sums.unwrap_or(defaults.sums) {
            SumScheme::Double if self.never_double => SumScheme::Blocks,
            sums => sums,
        };
        Options {
            k: self.k,
            sums,
            accuracy: self.accuracy.unwrap_or(defaults.accuracy),
            scheme: self.scheme.unwrap_or(defaults.scheme),
            device: self.device,
            progress: None,
        }
    }
}

/// Keywords that mean something only where a result is written, now or later.
pub const OF_RESULTS: &[&str] = &["out", "call"];
/// The one that means nothing where there is no choice of when to compute.
pub const OF_TIME: &[&str] = &["call"];

/// Sets what reductions over pairs do unless a call says otherwise.
///
/// `accuracy`: "declared" (cheaper forms within declared bounds) or "strict"; `scheme`: "auto",
/// "1d" or "2d"; `sum_scheme`: "block_sum", "kahan_scheme" or "double"; `progress`: whether long
/// work shows a bar.
///
/// >>> import tilework as tw
/// >>> tw.pairs.set_defaults(accuracy="strict")
/// >>> tw.pairs.get_defaults()["accuracy"]
/// 'strict'
/// >>> tw.pairs.set_defaults(accuracy="declared")
#[pyfunction]
#[pyo3(signature = (*, accuracy=None, scheme=None, sum_scheme=None, progress=None))]
fn set_defaults(
    accuracy: Option<&Bound<'_, PyAny>>,
    scheme: Option<&Bound<'_, PyAny>>,
    sum_scheme: Option<&Bound<'_, PyAny>>,
    progress: Option<bool>,
) -> PyResult<()> {
    let accuracy = accuracy.map(|value| chosen("accuracy", value)).transpose()?;
    let scheme = scheme.map(|value| chosen("scheme", value)).transpose()?;
    let sums = sum_scheme.map(|value| chosen("sum_scheme", value)).transpose()?;
    let mut defaults = DEFAULTS.lock();
    defaults.accuracy = accuracy.unwrap_or(defaults.accuracy);
    defaults.scheme = scheme.unwrap_or(defaults.scheme);
    defaults.sums = sums.unwrap_or(defaults.sums);
    defaults.progress = progress.unwrap_or(defaults.progress);
    Ok(())
}

/// What reductions over pairs do unless a call says otherwise.
#[pyfunction]
fn get_defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let now = *DEFAULTS.lock();
    let shown = PyDict::new(py);
    shown.set_item("accuracy", now.accuracy.name())?;
    shown.set_item("scheme", now.scheme.name())?;
    shown.set_item("sum_scheme", now.sums.name())?;
    shown.set_item("progress", now.progress)?;
    Ok(shown)
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register!(module: set_defaults, get_defaults);
    Ok(())
}
