//! Provider-defined functions: their signatures, arguments and errors.

use cty::{Type, Value};

use crate::model::Cty;
use crate::schema::Text;

/// A function: its signature and its implementation.
///
/// ```
/// use monoform_sdk::{Arguments, Function, FunctionError, Parameter, Plain, Provider};
///
/// fn repeat() -> Function {
///     let parameters = vec![
///         Parameter::new::<String>("text", "The text."),
///         Parameter::new::<i64>("times", "The number of repetitions."),
///     ];
///     Function::new("Repeats a text", "Returns the text several times.", parameters, |arguments: Arguments<'_>| {
///         let (text, times) = (arguments.get::<String>(0)?, arguments.get::<i64>(1)?);
///         // The host marks the argument in the configuration.
///         let times = usize::try_from(times).map_err(|_| FunctionError::argument(1, "it cannot be negative"))?;
///         Ok(text.repeat(times))
///     })
/// }
///
/// fn provider() -> impl Provider {
///     Plain(|members| members.function("repeat", repeat()))
/// }
/// # let _ = provider();
/// ```
pub struct Function {
    #[doc(hidden)]
    pub parameters: Vec<Parameter>,
    #[doc(hidden)]
    pub variadic: Option<Parameter>,
    #[doc(hidden)]
    pub returns: Type,
    #[doc(hidden)]
    pub summary: &'static str,
    #[doc(hidden)]
    pub description: &'static str,
    #[doc(hidden)]
    pub text: Text,
    body: Body,
}

type Body = Box<dyn Fn(Arguments<'_>) -> Result<Value, FunctionError> + Send + Sync>;

/// One parameter of a function.
#[derive(Clone, Debug)]
pub struct Parameter {
    #[doc(hidden)]
    pub name: &'static str,
    #[doc(hidden)]
    pub ty: Type,
    #[doc(hidden)]
    pub description: &'static str,
    #[doc(hidden)]
    pub allow_null: bool,
    #[doc(hidden)]
    pub allow_unknown: bool,
}

impl Parameter {
    /// Creates a parameter of the type of `T`. Its argument is never null or unknown.
    #[must_use]
    pub fn new<T: Cty>(name: &'static str, description: &'static str) -> Parameter {
        Parameter {
            name,
            ty: T::ty(),
            description,
            allow_null: false,
            allow_unknown: false,
        }
    }

    /// Allows null as the argument.
    #[must_use]
    pub fn allow_null(mut self) -> Parameter {
        self.allow_null = true;
        self
    }

    /// Calls the function even if the argument is unknown or contains unknown values.
    #[must_use]
    pub fn allow_unknown(mut self) -> Parameter {
        self.allow_unknown = true;
        self
    }
}

impl Function {
    /// Creates a function that returns a value of the type of `R`.
    #[must_use]
    pub fn new<R: Cty>(
        summary: &'static str,
        description: &'static str,
        parameters: Vec<Parameter>,
        body: impl Fn(Arguments<'_>) -> Result<R, FunctionError> + Send + Sync + 'static,
    ) -> Function {
        Function {
            parameters,
            variadic: None,
            returns: R::ty(),
            summary,
            description,
            text: Text::Markdown,
            body: Box::new(move |arguments| body(arguments).map(|r| r.to_cty())),
        }
    }

    /// Adds a last parameter that takes any number of arguments.
    #[must_use]
    pub fn variadic(mut self, parameter: Parameter) -> Function {
        self.variadic = Some(parameter);
        self
    }

    /// Marks the descriptions as plain text instead of Markdown.
    #[must_use]
    pub fn plain(mut self) -> Function {
        self.text = Text::Plain;
        self
    }

    /// Declares a return type that differs from that of the body, for bodies that return [`Any`](crate::Any).
    #[must_use]
    pub fn returning(mut self, ty: Type) -> Function {
        self.returns = ty;
        self
    }

    /// Returns the parameter for the argument at this position, counted from zero. All positions after the other parameters belong to the
    /// variadic parameter; `None` if there is none.
    #[doc(hidden)]
    pub fn parameter(&self, position: usize) -> Option<&Parameter> {
        self.parameters.get(position).or(self.variadic.as_ref())
    }

    /// Calls the function. Each argument must have the type of its parameter.
    pub fn call(&self, arguments: &[Value]) -> Result<Value, FunctionError> {
        (self.body)(Arguments(arguments))
    }
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a>(&'a [Value]);

impl Arguments<'_> {
    /// Returns the argument at this position, counted from zero.
    pub fn get<T: Cty>(&self, position: usize) -> Result<T, FunctionError> {
        let value = self
            .0
            .get(position)
            .ok_or_else(|| FunctionError::new("too few arguments"))?;
        T::from_cty(value).map_err(|e| FunctionError::argument(position, e.message))
    }

    /// Returns the number of arguments, including those of a variadic parameter.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Error of a function call.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionError {
    /// The error message.
    pub text: String,
    /// Index of the wrong argument, from zero.
    pub argument: Option<usize>,
}

impl FunctionError {
    /// Creates an error of the call as a whole.
    pub fn new(text: impl Into<String>) -> FunctionError {
        FunctionError {
            text: text.into(),
            argument: None,
        }
    }

    /// Creates an error of one argument.
    pub fn argument(position: usize, text: impl Into<String>) -> FunctionError {
        FunctionError {
            text: text.into(),
            argument: Some(position),
        }
    }
}
