package vault

func (b Binding) encode(w *writer) {
	for _, s := range []string{b.Kind, b.Header, b.Prefix, b.Username, b.Scheme, b.Host, b.BasePath, b.CADigest} {
		w.str(s)
	}
	w.u16(uint16(b.Port))
	w.list(b.Pins)
}

func decodeBinding(r *reader) Binding {
	var b Binding
	for _, s := range []*string{&b.Kind, &b.Header, &b.Prefix, &b.Username, &b.Scheme, &b.Host, &b.BasePath, &b.CADigest} {
		*s = r.str(maxBindingText)
	}
	b.Port = int(r.u16())
	b.Pins = r.list(maxBindingText)
	return b
}

// encodeMore writes what a binding has beyond its first form. Bindings without
// it are written as they always were.
func (b Binding) encodeMore(w *writer) {
	w.u8(uint8(len(b.Params)))
	for _, p := range b.Params {
		w.str(p.Name)
		w.str(p.Value)
	}
	if t := b.Token; t == nil {
		w.u8(0)
	} else {
		w.u8(1)
		for _, s := range []string{t.Scheme, t.Host, t.Path, t.CADigest} {
			w.str(s)
		}
		w.u16(uint16(t.Port))
		w.list(t.Pins)
	}
	w.str(b.User)
	w.list(b.HostKeys)
}

func (b *Binding) decodeMore(r *reader) {
	for range r.u8() {
		b.Params = append(b.Params, Param{r.str(maxParamName), r.str(maxParamValue)})
	}
	switch r.u8() {
	case 0:
	case 1:
		t := &Place{}
		for _, s := range []*string{&t.Scheme, &t.Host, &t.Path, &t.CADigest} {
			*s = r.str(maxBindingText)
		}
		t.Port = int(r.u16())
		t.Pins = r.list(maxBindingText)
		b.Token = t
	default:
		r.bad = true
	}
	b.User = r.str(maxBindingText)
	b.HostKeys = r.list(maxHostKey)
}

// hasMore says whether encodeMore has anything to say.
func (b Binding) hasMore() bool {
	return len(b.Params) > 0 || b.Token != nil || b.User != "" || len(b.HostKeys) > 0
}

// list writes at most 255 texts; every list's limit is far below.
func (w *writer) list(all []string) {
	w.u8(uint8(len(all)))
	for _, s := range all {
		w.str(s)
	}
}

func (r *reader) list(limit int) []string {
	var out []string
	for range r.u8() {
		out = append(out, r.str(limit))
	}
	return out
}
