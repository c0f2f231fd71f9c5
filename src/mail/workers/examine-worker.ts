import { serve } from './examine.ts'
import { attachment, parse } from '../../message/parse.ts'

serve({ parse, attachment })
