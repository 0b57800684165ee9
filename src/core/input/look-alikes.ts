/*
 * Which characters look like ASCII in common fonts. Only characters that a person takes for another one: letters with visible accents,
 * and letters of a script that nobody confuses, are not here.
 */

const pairs = (lists: readonly (readonly [string, string])[]): ReadonlyMap<string, string> =>
  new Map(lists.flatMap(([from, to]) => [...from].map((char, index) => [char, to[index] ?? ''] as const)));

/** Letters of other scripts that look like one of ASCII. */
export const LETTERS = pairs([
  // Cyrillic
  ['асеорхуіјѕһԁԛԝӏԍѵүёғ', 'aceopxyijshdqwlgvyef'],
  ['АВЕКМНОРСТУХІЈЅԌԚԜҮӀѴЗ', 'ABEKMHOPCTYXIJSGQWYIV3'],
  // Greek
  ['αγικνορτυχϲϳ', 'ayiKvoptuxcj'],
  ['ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ', 'ABEZHIKMNOPTYXCJ'],
  // Armenian
  ['օոսհցյգԼՏՍՕ', 'onuhgjqLSUO'],
  // Cherokee
  ['ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᏒᏚᎢᏙᏔᎩᏃ', 'ABCDEGHIJKLMPRSTVWYZ'],
  // Latin itself: letters without their dot, and with another shape of it
  ['ıɑɡǃ', 'iag!'],
]);

/** Letters that look like one of ASCII only among Latin letters: nobody takes `нет` for a Latin word, but `н` in `аdmiн` for one. */
export const AMONG_LATIN = pairs([
  ['вгкмнптьѡ', 'BrkMHnTbw'],
  ['εηκμρσω', 'enkupow'],
]);

/** Scripts that have hardly any use among Latin letters but to look like them. */
export const LATIN_SHAPED =
  /[\p{Script=Lisu}\p{Script=Coptic}\p{Script=Deseret}\p{Script=Old_Italic}\p{Script=Cherokee}]/u;

/** Signs and spaces that look like one of ASCII. */
export const SIGNS = pairs([
  ['\u2010\u2011\u2012\u2013\u2212\ufe58\u02d7\u2043', '--------'],
  ['\u2044\u2215\u29f8\u2571', '////'],
  ['\u2216\u29f5\u29f9', '\\\\\\'],
  ['\u2223\u01c0\u2758', '|||'],
  ['\u037e\u2024\u201a\u02d0\ua789\u2236', ';.,:::'],
  ['\u2018\u2019\u02bc\u02b9\u2032', "'''''"],
  ['\u201c\u201d\u2033', '"""'],
  ['\u02c6\u02dc\u223c\u2217\u204e', '^~~**'],
  ['\u2039\u203a\u276e\u276f', '<><>'],
  [
    '\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\u2800\u{1d159}',
    ' '.repeat(18),
  ],
]);

export const SCRIPTS = [
  { name: 'Cyrillic', letter: /\p{Script=Cyrillic}/u },
  { name: 'Greek', letter: /\p{Script=Greek}/u },
  { name: 'Armenian', letter: /\p{Script=Armenian}/u },
  { name: 'Cherokee', letter: /\p{Script=Cherokee}/u },
  { name: 'Lisu', letter: /\p{Script=Lisu}/u },
  { name: 'Coptic', letter: /\p{Script=Coptic}/u },
  { name: 'Deseret', letter: /\p{Script=Deseret}/u },
  { name: 'Old Italic', letter: /\p{Script=Old_Italic}/u },
] as const;

/** Full-width and mathematical letters, Roman numerals, ligatures: Unicode itself says which ASCII they stand for. */
const COMPATIBLE = /[\uff01-\uff5e\u{1d400}-\u{1d7ff}\u2100-\u214f\u2160-\u217f\ufb00-\ufb06]/u;
const ASCII = /^[\x20-\x7e]+$/;

/** The ASCII that a character stands for by Unicode's own tables; null: none. */
export function compatible(char: string): string | null {
  if (!COMPATIBLE.test(char)) return null;
  const plain = char.normalize('NFKC');
  return ASCII.test(plain) ? plain : null;
}
