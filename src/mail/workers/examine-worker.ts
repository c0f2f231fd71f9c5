import { serve } from './examine.ts'
import { attachmentsOf, parse } from '../../message/parse.ts'

serve({ parse, attachmentsOf })
