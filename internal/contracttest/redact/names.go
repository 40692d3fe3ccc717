package redact

import (
	"slices"
	"strings"
	"unicode"
)

// Words of member names, as singulars in small letters.
var (
	secretWords = []string{
		"token", "secret", "password", "passwd", "passphrase", "pwd", "apikey", "credential", "authorization", "cookie", "signature", "jwt",
		"bearer", "otp", "pin", "csrf", "nonce", "privatekey", "accesskey", "sessionid", "sig",
	}
	// Two words that are a secret only together.
	secretPairs = [][2]string{{"api", "key"}, {"access", "key"}, {"private", "key"}, {"secret", "key"}, {"session", "id"}, {"session", "key"}, {"client", "key"}, {"signing", "key"}, {"auth", "key"}}

	// What stands behind such a word says about the secret and is none.
	aboutSecret = []string{"type", "count", "limit", "expire", "expires", "expiry", "at", "name", "status", "state", "enabled", "required", "scope", "ttl", "algorithm", "alg", "version"}

	phoneWords   = []string{"phone", "telephone", "tel", "mobile", "cell", "fax", "msisdn"}
	emailWords   = []string{"email", "mail", "emailaddress"}
	addressWords = []string{"street", "streetaddress", "postcode", "zipcode", "zip", "postalcode", "housenumber", "addressline"}
	addressPairs = [][2]string{{"postal", "code"}, {"zip", "code"}, {"street", "address"}, {"postal", "address"}, {"billing", "address"}, {"shipping", "address"}, {"address", "line"}, {"line", "1"}, {"line", "2"}}

	// Names of members that hold a person's name by themselves.
	personNames = []string{
		"fullname", "firstname", "lastname", "middlename", "givenname", "familyname", "surname", "realname", "displayname", "nickname", "username",
		"login", "author", "assignee", "reporter", "creator", "reviewer", "committer", "approver", "contactname", "cardholder", "cardholdername", "customername",
	}
	// Members that are a person: what they call name, title or slug is the
	// person's.
	personParents = []string{
		"user", "author", "owner", "assignee", "assignees", "reporter", "creator", "reviewer", "reviewers", "committer", "approver", "person", "people", "customer",
		"contact", "member", "members", "sender", "recipient", "profile", "actor", "createdby", "updatedby", "employee", "patient", "mergedby", "triggeredby", "pusher",
	}
	// Members that are a thing: what they call a full name is the thing's.
	things         = []string{"repository", "repo", "project", "package", "image", "repositories", "projects", "head", "base"}
	namesOfPersons = []string{"name", "title", "slug", "key", "handle", "initials", "id", "accountid", "summary", "displayname"}
)

// kindOfName says what a member's name says about its text, "" for nothing.
func kindOfName(path []string) string {
	if len(path) == 0 {
		return ""
	}
	words := wordsOf(path[len(path)-1])
	joined := strings.Join(words, "")
	switch {
	case len(words) == 0:
		return ""
	case isSecret(words):
		return kindSecret
	case slices.ContainsFunc(words, func(w string) bool { return slices.Contains(phoneWords, w) }):
		return kindPhone
	case slices.Contains(emailWords, words[len(words)-1]) || slices.Contains(emailWords, joined):
		return kindEmail
	case slices.Contains(addressWords, words[len(words)-1]) || hasPair(words, addressPairs):
		return kindAddress
	case slices.Contains(personNames, joined) && !(len(path) > 1 && slices.Contains(things, strings.Join(wordsOf(path[len(path)-2]), ""))):
		return kindPerson
	}
	if len(words) > 1 && words[len(words)-1] == "by" {
		return kindPerson // reviewed_by, closedBy
	}
	if len(path) > 1 && slices.Contains(personParents, strings.Join(wordsOf(path[len(path)-2]), "")) && slices.Contains(namesOfPersons, joined) {
		return kindPerson
	}
	return ""
}

func isSecret(words []string) bool {
	if len(words) > 1 && slices.Contains(aboutSecret, words[len(words)-1]) {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, strings.TrimSuffix(w, "s")) }) || hasPair(words, secretPairs)
}

func hasPair(words []string, pairs [][2]string) bool {
	for i := range len(words) - 1 {
		for _, p := range pairs {
			if words[i] == p[0] && strings.TrimSuffix(words[i+1], "s") == p[1] {
				return true
			}
		}
	}
	return false
}

// wordsOf takes a name apart at case changes, signs and digits: apiKey, API-Key
// and api_key are the same two words.
func wordsOf(name string) []string {
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = nil
		}
	}
	letters := []rune(name)
	for i, c := range letters {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			end()
			continue
		case i > 0 && unicode.IsUpper(c) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			end()
		case i > 0 && unicode.IsDigit(c) != unicode.IsDigit(letters[i-1]):
			end()
		}
		word = append(word, c)
	}
	end()
	return out
}
