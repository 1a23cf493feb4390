//! One actor per awake session: carries out the effects of turns.
