import { isJson, type Json, type RequestBody } from './request.ts';

/**
 * Titles, topics and probes: small questions without tools, put to a small model, with an instruction of their own, or for an
 * answer in a certain form (Gemini CLI has each prompt's difficulty judged that way).
 */
export function isSideCall({
  tools,
  model,
  system,
  schema,
  raw,
}: Omit<RequestBody, 'messages'> & { readonly raw: Json }) {
  if (tools.length > 0) return false;
  return schema !== null || /haiku/i.test(model) || isProbe(raw) || (system.length < LONG && ERRAND.test(system));
}

/** Claude 2.1 asks for a title with "You are naming a coding session …". */
const ERRAND =
  /\bnaming a\b[^.\n]{0,20}\bsession\b|\b(?:generate|write|create|extract|analy[sz]e)\b[^.\n]{0,80}\b(?:title|topic|name|kebab-case)\b/i;
/** The instructions of a conversation speak of titles, too; they are longer than those of an errand. */
const LONG = 8_000;

/** One token is asked for by who only wants to know whether somebody answers. */
function isProbe({ max_tokens, max_output_tokens, max_completion_tokens, generationConfig }: Json): boolean {
  const gemini = isJson(generationConfig) ? generationConfig.maxOutputTokens : undefined;
  return [max_tokens, max_output_tokens, max_completion_tokens, gemini].includes(1);
}
