package gateway

import (
	"chatelaine/internal/executor"
	"chatelaine/internal/secret"
)

// headHeld is kept in place of a head of which a name held the credential: as it is
// rendered its capitals are others, so that no search would find what to mask.
const headHeld = "(the name of a header held the credential)\n"

// searchedHead renders the head of an answer for the record, without what scan finds
// in it. Names are searched as the remote wrote them.
func searchedHead(x executor.Exchange, scan func([]byte) []secret.Hit) ([]byte, []secret.Hit) {
	head := headBytes(x.Status, x.Header, x.Trailer)
	hits := scan(head)
	if names := scan(x.Names); len(names) > 0 {
		return []byte(headHeld), append(hits, names...)
	}
	return secret.Mask(head, hits), hits
}
