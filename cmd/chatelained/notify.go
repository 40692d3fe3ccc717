package main

import "log/slog"

// notifier runs the operator's program when a card opens, with the sentence on
// its standard input. A card whose notice finds no place is still on the desk.
type notifier struct{ *child }

func newNotifier(argv, env []string, log *slog.Logger) *notifier {
	return &notifier{newChild("notify", argv, env, log)}
}

func (n *notifier) send(sentence string) {
	if n.configured() {
		n.tell(sentence)
	}
}
