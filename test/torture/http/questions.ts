import type { RoutePath } from '../../../src/http/route.ts'
import type { Asking, Question } from '../../contract/asking.ts'
import type { Estate } from '../../contract/estate.ts'

/** What a call is asked with. Of what changes how people sign in it is the example of the document, so that nothing is changed before. */
export async function questionOf(asking: Asking, spelling: RoutePath, estate: Estate): Promise<Question> {
  const { example } = spelling.route
  if (/\/(?:account|session|people|setup|hold-links|accounts)\b/.test(spelling.path))
    return example?.body === undefined ? {} : { body: example.body }
  return (await asking.good(spelling, estate)).question
}
