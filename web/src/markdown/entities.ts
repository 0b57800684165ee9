/*
 * Characters that are written by name or number in Markdown, as in HTML. The names are those of HTML 4, which models use; the others stay
 * as they were written. A table of our own: a browser knows them all, but only where text becomes markup.
 */

/** From U+00A0 to U+00FF. */
const LATIN =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil ' +
  'sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave ' +
  'Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute ' +
  'acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml ' +
  'divide oslash ugrave uacute ucirc uuml yacute thorn yuml';
/** From U+03B1; in capitals from U+0391. */
const GREEK =
  'alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega';
const OTHERS =
  'amp & lt < gt > quot " apos \' ensp \u2002 emsp \u2003 thinsp \u2009 ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ ' +
  'lsaquo ‹ rsaquo › bull • hellip … permil ‰ prime ′ Prime ″ euro € trade ™ larr ← uarr ↑ rarr → darr ↓ harr ↔ lArr ⇐ rArr ⇒ hArr ⇔ ' +
  'forall ∀ part ∂ exist ∃ empty ∅ isin ∈ notin ∉ ni ∋ prod ∏ sum ∑ minus − radic √ infin ∞ and ∧ or ∨ cap ∩ cup ∪ int ∫ asymp ≈ ne ≠ ' +
  'equiv ≡ le ≤ ge ≥ sub ⊂ sup ⊃ sube ⊆ supe ⊇ oplus ⊕ otimes ⊗ perp ⊥ sdot ⋅ check ✓ cross ✗ star ☆ starf ★ OElig Œ oelig œ Scaron Š ' +
  'scaron š fnof ƒ dagger † Dagger ‡';

const NAMED = new Map([
  ...numbered(LATIN, 0xa0),
  ...numbered(GREEK, 0x3b1),
  ...numbered(capitals(GREEK), 0x391),
  ...pairs(),
]);

function numbered(names: string, first: number): [string, string][] {
  return names.split(' ').map((name, at) => [name, String.fromCodePoint(first + at)]);
}

function capitals(names: string): string {
  return names.replaceAll(/\b\w/g, (letter) => letter.toUpperCase());
}

function pairs(): [string, string][] {
  const words = OTHERS.split(/ /);
  return words.flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, words[at + 1] ?? '']] : []));
}

const WRITTEN = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]*));/g;

/** The text with these characters in place of their names and numbers. */
export function withCharacters(text: string): string {
  if (!text.includes('&')) return text;
  return text.replaceAll(WRITTEN, (written, decimal, hexadecimal, name) => {
    if (name !== undefined) return NAMED.get(name) ?? written;
    const code = decimal === undefined ? Number.parseInt(hexadecimal, 16) : Number(decimal);
    const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return isCharacter ? String.fromCodePoint(code) : '\ufffd';
  });
}
