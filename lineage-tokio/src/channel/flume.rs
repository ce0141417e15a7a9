//! The channels of `flume`.

use flume::{SendError, Sender, TrySendError};

use super::{SendCarried, TrySendCarried};
use crate::envelope::{Carried, carried};

impl<T> SendCarried<T> for &Sender<Carried<T>> {
    type Answer = Result<(), SendError<T>>;

    #[track_caller]
    fn send_carried(self, value: T) -> Self::Answer {
        let sent = self.send(carried(value));
        sent.map_err(|unsent| SendError(unsent.into_inner().take_back()))
    }
}

impl<T> TrySendCarried<T> for Sender<Carried<T>> {
    type Error = TrySendError<T>;

    #[track_caller]
    fn try_send_carried(&self, value: T) -> Result<(), Self::Error> {
        let sent = self.try_send(carried(value));
        sent.map_err(|unsent| match unsent {
            TrySendError::Full(envelope) => TrySendError::Full(envelope.take_back()),
            TrySendError::Disconnected(envelope) => {
                TrySendError::Disconnected(envelope.take_back())
            }
        })
    }
}
