import * as z from 'zod';
import type { ContentBlock as ContentBlockValue, EmbeddedResource, Prompt as PromptValue } from '../../core/content.ts';
import { named } from '../registry.ts';

const optionalText = z.exactOptional(z.string());

const Resource = z.union([
  z.looseObject({ uri: z.string(), text: z.string(), mimeType: optionalText }),
  z.looseObject({ uri: z.string(), blob: z.string(), mimeType: optionalText }),
]) satisfies z.ZodType<EmbeddedResource>;

/** As the Agent Client Protocol has it; further fields are kept as given. */
export const ContentBlock = named(
  'ContentBlock',
  z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('text'), text: z.string() }),
    z.looseObject({ type: z.literal('image'), data: z.string(), mimeType: z.string(), uri: optionalText }),
    z.looseObject({ type: z.literal('audio'), data: z.string(), mimeType: z.string() }),
    z.looseObject({ type: z.literal('resource_link'), uri: z.string(), name: z.string(), mimeType: optionalText }),
    z.looseObject({ type: z.literal('resource'), resource: Resource }),
  ]),
) satisfies z.ZodType<ContentBlockValue>;

export const Prompt = named('Prompt', z.array(ContentBlock).min(1).max(1_000)) satisfies z.ZodType<PromptValue>;
