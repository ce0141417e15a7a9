//! Certificates made for one test.
