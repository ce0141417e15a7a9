//! tokio's channels.

use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::{SendCarried, SendCarriedAsync, TrySendCarried};
use crate::envelope::{Carried, carried};

impl<T: Send> SendCarriedAsync<T> for mpsc::Sender<Carried<T>> {
    type Error = mpsc::error::SendError<T>;

    #[track_caller]
    fn send_carried(&self, value: T) -> impl Future<Output = Result<(), Self::Error>> + Send {
        // Not inside of the future: what is current where this is called goes along.
        let envelope = carried(value);
        async move {
            let sent = self.send(envelope).await;
            sent.map_err(|unsent| mpsc::error::SendError(unsent.0.take_back()))
        }
    }
}

impl<T> TrySendCarried<T> for mpsc::Sender<Carried<T>> {
    type Error = mpsc::error::TrySendError<T>;

    #[track_caller]
    fn try_send_carried(&self, value: T) -> Result<(), Self::Error> {
        use mpsc::error::TrySendError;
        let sent = self.try_send(carried(value));
        sent.map_err(|unsent| match unsent {
            TrySendError::Full(envelope) => TrySendError::Full(envelope.take_back()),
            TrySendError::Closed(envelope) => TrySendError::Closed(envelope.take_back()),
        })
    }
}

impl<T> SendCarried<T> for &mpsc::UnboundedSender<Carried<T>> {
    type Answer = Result<(), mpsc::error::SendError<T>>;

    #[track_caller]
    fn send_carried(self, value: T) -> Self::Answer {
        let sent = self.send(carried(value));
        sent.map_err(|unsent| mpsc::error::SendError(unsent.0.take_back()))
    }
}

impl<T> SendCarried<T> for oneshot::Sender<Carried<T>> {
    type Answer = Result<(), T>;

    #[track_caller]
    fn send_carried(self, value: T) -> Self::Answer {
        self.send(carried(value)).map_err(Carried::take_back)
    }
}

impl<T> SendCarried<T> for &broadcast::Sender<Carried<T>> {
    /// How many receivers there are.
    type Answer = Result<usize, broadcast::error::SendError<T>>;

    #[track_caller]
    fn send_carried(self, value: T) -> Self::Answer {
        let sent = self.send(carried(value));
        sent.map_err(|unsent| broadcast::error::SendError(unsent.0.take_back()))
    }
}

impl<T> SendCarried<T> for &watch::Sender<Carried<T>> {
    type Answer = Result<(), watch::error::SendError<T>>;

    #[track_caller]
    fn send_carried(self, value: T) -> Self::Answer {
        let sent = self.send(carried(value));
        sent.map_err(|unsent| watch::error::SendError(unsent.0.take_back()))
    }
}
