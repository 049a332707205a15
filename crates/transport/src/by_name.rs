// SPDX-License-Identifier: Apache-2.0
//! Counters as a list of names and values, and their sums.
//! Promise: a counter that is missing from the list does not compile.

/// Implements `named` and `+=` for a struct of `u64`.
macro_rules! by_name {
    ($of:ident: $($name:ident),* $(,)?) => {
        impl $of {
            /// Every counter with its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                let $of { $($name),* } = *self;
                vec![$((stringify!($name), $name)),*]
            }
        }

        impl std::ops::AddAssign for $of {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

pub(crate) use by_name;
