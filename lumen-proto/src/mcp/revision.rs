//! Protocol revisions and the two eras they belong to.

/// A revision of the protocol, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// `2024-11-05`
    V2024_11_05,
    /// `2025-03-26`, the only one with batches.
    V2025_03_26,
    /// `2025-06-18`
    V2025_06_18,
    /// `2025-11-25`
    V2025_11_25,
    /// `2026-07-28`, the first without sessions.
    V2026_07_28,
}

impl Revision {
    /// All revisions in order.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest one with a handshake.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// Reads its name. Revisions that came later are not known, whatever their date.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the era it belongs to.
    pub fn era(self) -> Era {
        if self <= Self::NEWEST_LEGACY { Era::Legacy } else { Era::Modern }
    }

    /// Returns whether messages may come in arrays.
    pub fn may_batch(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Returns the revision to tell a client that asked for `wanted`, of a server that has agreed on this one: the
    /// older of both; if what the client asked for is not known, this one.
    #[must_use]
    pub fn answer_for(self, wanted: Option<Self>) -> Self {
        wanted.map_or(self, |wanted| wanted.min(self))
    }
}

/// How a client and a server come to terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// By a handshake, once a session.
    Legacy,
    /// With every request.
    Modern,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_read_and_ordered() {
        assert!(Revision::ALL.is_sorted());
        assert!(Revision::ALL.is_sorted_by_key(|revision| revision.as_str()));
        assert!(
            Revision::ALL.into_iter().all(|revision| Revision::parse(revision.as_str()) == Some(revision))
        );
        assert!(
            ["2027-01-01", "2024-11-5", "", "DRAFT"].into_iter().all(|name| Revision::parse(name).is_none())
        );
    }

    #[test]
    fn only_one_has_batches_and_only_one_is_modern() {
        let all = Revision::ALL.into_iter();
        assert!(all.clone().filter(|revision| revision.may_batch()).eq([Revision::V2025_03_26]));
        assert!(all.filter(|revision| revision.era() == Era::Modern).eq([Revision::V2026_07_28]));
        assert_eq!(Revision::NEWEST_LEGACY.as_str(), "2025-11-25");
    }

    #[test]
    fn a_client_is_told_the_older_revision() {
        let server = Revision::V2025_06_18;
        assert_eq!(server.answer_for(Some(Revision::V2024_11_05)), Revision::V2024_11_05);
        assert_eq!(server.answer_for(Some(Revision::V2025_06_18)), server);
        assert_eq!(server.answer_for(Some(Revision::V2026_07_28)), server);
        assert_eq!(server.answer_for(None), server);
    }
}
