import { serve } from './examine.ts'
import { attachment, parse } from './parse.ts'

serve({ parse, attachment })
