"""The second implementation: pyspf, dkimpy and authheaders. Answers one line of JSON for each line of JSON."""
import base64
import email.utils
import json
import re
import socket
import sys

import authheaders
import authheaders.dmarc_lookup as dmarc_lookup
import authres
import dkim
import publicsuffix2
import spf

zone = {}


def find(name):
    """The records of a name, and those that its aliases lead to."""
    name = name.lower().rstrip('.')
    for _ in range(9):
        records = zone.get(name)
        if records is None or 'CNAME' not in records:
            return records
        name = records['CNAME'].lower()
    return {'error': True}


def spf_lookup(name, qtype, strict=True, timeout=None):
    if any(len(label) > 63 for label in name.split('.')):
        raise spf.TempError('DNS label too long')
    records = find(name)
    if records is None:
        return
    if 'error' in records:
        raise spf.TempError('DNS failure')
    for value in records.get(qtype, []):
        if qtype == 'TXT':
            value = tuple(text.encode('latin-1') for text in value)
        elif qtype == 'AAAA':
            value = bytes(socket.inet_pton(socket.AF_INET6, value))
        elif qtype == 'MX':
            value = tuple(value)
        yield ((name, qtype), value)


spf.DNSLookup = spf_lookup
expand_domain = spf.query.expand_domain


def expanded(self, argument):
    """Hides from pyspf that a record includes itself: it refuses that at once, where RFC 7208 ends after ten lookups."""
    domain = expand_domain(self, argument)
    return domain.swapcase() if domain and domain == self.d else domain


spf.query.expand_domain = expanded


def key_lookup(name, timeout=5):
    records = find(name.decode('latin-1'))
    if records is None:
        return None
    if 'error' in records:
        raise dkim.DnsTimeoutError('DNS failure')
    texts = records.get('TXT') or []
    return ''.join(texts[0]).encode('latin-1') if texts else None


def policy_lookup(name, qtype='TXT'):
    records = find(name)
    if records is None or 'error' in records:
        return None
    return ['"%s"' % ''.join(texts) for texts in records.get(qtype.upper(), [])] or None


# the list is read once; with its own function all answers of a name are seen, and not the first alone
with open(dmarc_lookup.get_suffix_list_file_name(), encoding='utf-8') as lines:
    suffixes = publicsuffix2.PublicSuffixList([*lines, 'test'])
authheaders.get_org_domain = dmarc_lookup.get_org_domain = suffixes.get_public_suffix
authheaders.dns_query = dmarc_lookup.dns_query = policy_lookup


def by_pyspf(case):
    result, _, comment = spf.query(i=case['ip'], s=case['mail_from'], h=case['helo'], receiver='mx.test').check()
    return {'result': result, 'reason': str(comment)}


def by_dkimpy(raw):
    answers = []
    try:
        verifier = dkim.DKIM(raw)
        count = sum(1 for name, _ in verifier.headers if name.lower() == b'dkim-signature')
    except Exception as error:
        return [], repr(error)
    for index in range(count):
        try:
            verifier = dkim.DKIM(raw)
            passed = verifier.verify(idx=index, dnsfunc=key_lookup)
            reason = 'verified' if passed else 'not verified'
        except Exception as error:
            passed, reason = False, repr(error)
        answers.append({'result': 'pass' if passed else 'fail', 'reason': reason})
    return answers, None


def by_dkimpy_arc(raw):
    try:
        result, _, reason = dkim.ARC(raw).verify(dnsfunc=key_lookup)
        return {'result': (result or b'fail').decode(), 'reason': str(reason)}
    except Exception as error:
        return {'result': 'fail', 'reason': repr(error)}


class Troubled(Exception):
    """A lookup failed for a time."""


def policy_at(name):
    """The DMARC record of a name (RFC 9989 4.10): the only one that is one, without a tag twice."""
    if 'error' in (find('_dmarc.' + name) or {}):
        raise Troubled
    texts = [text.strip('"').strip() for text in policy_lookup('_dmarc.' + name) or []]
    found = []
    for text in texts:
        first = text.split(';')[0].split('=')
        if len(first) == 2 and first[0].strip().lower() == 'v' and first[1].strip() == 'DMARC1':
            found.append(text)
    if len(found) != 1:
        return None
    tags = {}
    for index, tag in enumerate(found[0].split(';')):
        name, mark, value = tag.partition('=')
        name = name.strip() if index else name.strip().lower()
        if not name or not mark:
            continue
        if name in tags:
            return None
        tags[name] = value.strip().lower()
    return tags


def walk(domain):
    """The DNS Tree Walk (RFC 9989 4.10)."""
    labels = domain.split('.')
    found = []
    while labels:
        name = '.'.join(labels)
        record = policy_at(name)
        if record is not None:
            found.append((name, record))
            if record.get('psd') in ('y', 'n'):
                break
        labels = labels[-7:] if len(labels) > 7 else labels[1:]
    return found


def organization(domain):
    """The Organizational Domain (RFC 9989 4.10.2)."""
    found = walk(domain)
    for name, record in found:
        if record.get('psd') == 'n':
            return name
        if record.get('psd') == 'y' and name != domain:
            labels = domain.split('.')
            return '.'.join(labels[-(len(name.split('.')) + 1):])
    return found[-1][0] if found else domain


def is_usable(record):
    policies = ('none', 'quarantine', 'reject')
    valid = record.get('p') in policies and all(record.get(tag, 'none') in policies for tag in ('sp', 'np'))
    # a URI has a scheme, and no blanks in it (RFC 3986)
    return valid or any(re.fullmatch(r'[a-z][a-z0-9+.-]*:\S+', uri.strip()) for uri in record.get('rua', '').split(','))


def is_suffix(domain):
    return publicsuffix2.get_tld(domain) == domain


def by_tree_walk(author, spf_domain, signers, under_suffixes):
    """DMARC by RFC 9989, of which Debian has no implementation; with or without domains aligned that have a public suffix in common alone."""
    record = policy_at(author)
    if record is None:
        name = organization(author)
        found = dict(walk(author))
        record = found.get(name)
        if record is None:
            # RFC 9989 4.10.1: that of the public suffix
            record = next((one for _, one in found.items() if one.get('psd') == 'y'), None)
    if record is None or not is_usable(record):
        return 'none'
    def is_aligned(domain, mode):
        if domain == author:
            return True
        common = organization(author)
        return mode != 's' and organization(domain) == common and (under_suffixes or not is_suffix(common))
    result = 'fail'
    pairs = [(spf_domain, record.get('aspf'))] if spf_domain else []
    for domain, mode in pairs + [(domain, record.get('adkim')) for domain in signers]:
        try:
            if is_aligned(domain, mode):
                return 'pass'
        except Troubled:
            result = 'temperror'
    return result


def is_tree_other(author, domains):
    """Whether the tree and the list of public suffixes differ on these domains, or on where the record of the author's domain is."""
    for domain in [author, *domains]:
        try:
            if organization(domain) != suffixes.get_public_suffix(domain):
                return True
        except Troubled:
            # what is not known is no difference
            continue
    if policy_at(author) is not None:
        return False
    # the walk goes on above the domain of the organization, up to a public suffix that publishes
    return any(name not in (author, organization(author)) for name, _ in walk(author))


def author_of(raw):
    """The domain of the only author; None where there is not one."""
    header = raw if raw.startswith(b'\r\n') else raw.split(b'\r\n\r\n')[0]
    unfolded = re.sub(r'\r\n(?=[ \t])', '', header.decode('latin-1'))
    values = re.findall(r'^from[ \t]*:(.*)', unfolded, re.IGNORECASE | re.MULTILINE)
    addresses = [address for _, address in email.utils.getaddresses([value.strip() for value in values])]
    if len(values) != 1 or len(addresses) != 1 or '@' not in addresses[0]:
        return None
    return addresses[0].rpartition('@')[2].rstrip('.').lower()


def by_authheaders(raw, spf_domain, signers):
    def check(spf_result, dkim_result):
        try:
            answer = authheaders.check_dmarc(raw, spf_result, dkim_result, dnsfunc=policy_lookup)
            return answer.result, answer.header_from
        except Exception as error:
            return 'error', repr(error)
    results = []
    if spf_domain:
        results.append(check(authres.SPFAuthenticationResult(result='pass', smtp_mailfrom='x@' + spf_domain), None))
    for domain in signers:
        results.append(check(None, authres.DKIMAuthenticationResult(result='pass', header_d=domain)))
    results.append(check(None, None))
    return next((one for one in results if one[0] == 'pass'), results[-1])


def judged(case):
    global zone
    zone = case['zone']
    raw = base64.b64decode(case['raw'])
    spf_answer = by_pyspf(case)
    dkim_answers, dkim_error = by_dkimpy(raw)
    answer = {'spf': spf_answer, 'dkim': dkim_answers, 'dkim_error': dkim_error, 'arc': by_dkimpy_arc(raw)}
    # DMARC is compared for what the box found of SPF and DKIM, which are compared themselves
    spf_domain, signers = case['sender'], case['signers']
    result, author = by_authheaders(raw, spf_domain, signers)
    answer['dmarc'] = {'result': result, 'reason': str(author), 'walk': 'none', 'below': 'none', 'author': author_of(raw), 'tree': False}
    try:
        if answer['dmarc']['author']:
            for name, under_suffixes in (('below', False), ('walk', True)):
                answer['dmarc'][name] = by_tree_walk(answer['dmarc']['author'], spf_domain, signers, under_suffixes)
            answer['dmarc']['tree'] = is_tree_other(answer['dmarc']['author'], [spf_domain] * bool(spf_domain) + signers)
    except Troubled:
        answer['dmarc']['walk'] = 'temperror'
    return answer


for line in sys.stdin:
    print(json.dumps(judged(json.loads(line))), flush=True)
