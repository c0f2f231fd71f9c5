import { oneLine } from '../../core/text.ts'
import { withoutInvisible } from './invisible.ts'

/** What a text does that instructs its reader. */
export type Instruction = 'override' | 'secrecy' | 'disclosure' | 'role' | 'marker'

interface FoundInstruction {
  kind: Instruction
  /** The sentence, as it was compared; at most 80 characters. */
  excerpt: string
}

/**
 * A text as it is compared: in lower case, without accents and what nobody sees, and with characters of one form. `й` and `ё` lose their marks
 * too.
 */
export function comparable(text: string): string {
  return withoutInvisible(text)
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .normalize('NFC')
    .toLowerCase()
    .replace(/[łıß]/g, (letter) => (letter === 'ł' ? 'l' : letter === 'ı' ? 'i' : 'ss'))
    .replace(/[^\S\n]+/g, ' ')
}

/** Characters of a text that are searched. */
export const maxSearched = 64 * 1024

/** Sentences that are looked at for each kind. */
const maxSentences = 200

/** How much of a sentence is looked at before and after the word that was found. */
const reach = 120

/** The instructions in a text that `comparable` made; at most one of each kind. */
export function instructionsIn(text: string): FoundInstruction[] {
  const searched = text.length > maxSearched ? text.slice(0, maxSearched) : text
  const found: FoundInstruction[] = []
  for (const { kind, anchor, rules } of kinds) {
    let left = maxSentences
    for (const { index } of searched.matchAll(anchor)) {
      if (left-- === 0) break
      const sentence = sentenceAt(searched, index)
      if (rules.some((rule) => rule.every((part) => part.test(sentence)))) {
        found.push({ kind, excerpt: oneLine(sentence).slice(0, 80).toWellFormed() })
        break
      }
    }
  }
  return found
}

const sentenceEnds = /[.!?。！？;؟]\s|[。！？]|\n ?\n/g

/** The sentence around a position, as far as it reaches. */
function sentenceAt(text: string, at: number): string {
  const before = text.slice(Math.max(0, at - reach), at)
  const start = [...before.matchAll(sentenceEnds)].at(-1)
  const after = text.slice(at, at + reach)
  const end = after.search(sentenceEnds)
  return before.slice(start ? start.index + start[0].length : 0) + (end === -1 ? after : after.slice(0, end + 1))
}

/** Parts that all occur in one sentence, in any order. */
type Rule = readonly RegExp[]

interface Kind {
  kind: Instruction
  /** What a sentence of this kind has, in any language: the sentences around it are looked at. */
  anchor: RegExp
  rules: readonly Rule[]
}

const kinds: readonly Kind[] = [
  {
    kind: 'override',
    anchor:
      /ignore|ignorier|ignora|ignoriza|disregard|disregar|forget|overrid|bypass|vergiss|missacht|negeer|vergeet|oublie|oubliez|olvid|dimentic|trascur|esqueca|desconsider|zignoruj|zapomnij|pomin |проигнорир|игнорир|забуд|無視|忘れ|忽略|无视|忘记|不要理会|무시|잊어|잊고|تجاهل|انس |yok say|yoksay|gormezden|dikkate alma|unut/g,
    rules: [
      [
        /\b(?:ignore|disregard|forget|override|bypass)\b/,
        /\b(?:previous|prior|preceding|earlier|above|all|any|your|system|other|safety|those|these)\b/,
        /\b(?:instructions?|prompts?|rules|directives?|guidelines?|guardrails?|directions|programming)\b/,
      ],
      [
        /ignorier|vergiss|missacht/,
        /anweisung|vorgaben|regeln|instruktion|richtlinien/,
        /bisherig|vorherig|vorigen|fruher|alle|deine|oben/,
      ],
      [/ignor|oubli/, /instruction|consigne|directive|regles/, /precedent|anterieur|toutes|ci-dessus|tes |vos /],
      [/ignor|olvid/, /instruccion|indicacion|ordenes|reglas/, /anterior|previa|todas|tus |sus /],
      [/ignora|dimentic|trascur/, /istruzion|direttiv|regole/, /precedent|tutte|tue |sopra/],
      [/ignor|esqueca|desconsider/, /instruco|orientaco|regras/, /anterior|previa|todas|suas /],
      [/negeer|vergeet/, /instructie|aanwijzing|regels|opdracht/, /vorige|eerdere|voorgaande|alle|je /],
      [/zignoruj|zapomnij|pomin /, /instrukcj|polecen|wytyczn|zasad/, /poprzedni|wczesniejsz|wszystki/],
      [/игнорир|забуд/, /инструкци|указани|правил/, /предыдущ|прежни|все |выше/],
      [/忽略|无视|忘记|不要理会/, /指令|指示|提示|规则/, /之前|以前|先前|所有|上面|以上/],
      [/無視|忘れ|忽略|忘記/, /指示|命令|指令|プロンプト|ルール/, /これまで|以前|前の|すべて|全て|上記|之前|先前|所有/],
      [/무시|잊어|잊고/, /지시|명령|지침|프롬프트|규칙/, /이전|앞의|앞선|모든|위의|기존/],
      [/تجاهل|انس /, /تعليمات|التوجيهات|الاوامر|الأوامر|القواعد/, /السابقة|جميع|كل |أعلاه/],
      [/yok say|yoksay|gormezden|dikkate alma|unut/, /talimat|yonerge|komut|kural/, /onceki|tum|butun|yukaridaki/],
    ],
  },
  {
    kind: 'secrecy',
    anchor:
      /(?:do not|don't|dont|never|without) (?:ever )?(?:tell|inform|mention|notify|notif|alert|reveal|disclose|telling|informing|notifying|mentioning|show)|keep this (?:secret|hidden|from)|(?:sag|erzahl|verrat|informier|erwahn|teil)|ne (?:dis|dites|parle|parlez|previens|prevenez|mentionne|mentionnez|revele|revelez|informe|informez)|\bno (?:le |se lo |les? )?(?:diga|digas|informe|informes|mencion|revel|avis)|\bnon (?:dire|dirlo|informare|menzionare|rivelare|avvis|far)|\bnao (?:diga|conte|informe|mencione|revele|avise)|vertel|informeer|vermeld|\bnie (?:mow|informuj|wspominaj|ujawniaj)|не (?:говори|сообща|упомина|рассказ|уведомля|показыва)|不要(?:告诉|告知|通知|提及|透露|向)|别告诉|伝え(?:ない|ず)|知らせない|言わない|話さない|明かさない|말하지|알리지|언급하지|لا (?:تخبر|تذكر|تبلغ|تكشف)|(?:soyleme|bahsetme|bildirme|haber verme)/g,
    rules: [
      [
        /\b(?:tell|inform|mention|notify|alert|reveal|disclose|telling|informing|notifying|mentioning|show|keep)\b/,
        /\b(?:the |your )(?:user|human|owner|operator|principal|recipient|supervisor)/,
      ],
      [
        /(?:sag|erzahl|verrat|informier|erwahn|teil)/,
        /nicht|nichts|niemand|kein/,
        /(?:dem|den|der|deinem|deinen) (?:nutzer|benutzer|anwender|besitzer|menschen|auftraggeber|inhaber)/,
      ],
      [/\bne\b|\bn'/, /utilisateur|proprietaire|humain|destinataire/],
      [/\bno\b/, /usuario|propietario|humano|dueno/],
      [/\bnon\b/, /utente|proprietario|umano/],
      [/\bnao\b/, /usuario|utilizador|proprietario|humano|dono/],
      [/vertel|informeer|vermeld/, /niet|niets|nooit/, /gebruiker|eigenaar/],
      [/\bnie\b/, /uzytkowni|wlasciciel|czlowiek|uzytkownikowi/],
      [/не /, /пользовател|владел|человек|хозяин/],
      [/不要|别/, /用户|使用者|主人|所有者/],
      [/伝え|知らせ|言わ|話さ|明かさ/, /ユーザー|利用者|所有者|使用者/],
      [/하지|말/, /사용자|소유자|이용자/],
      [/لا /, /المستخدم|المالك|صاحب/],
      [/soyleme|bahsetme|bildirme|haber verme/, /kullanici|sahib/],
    ],
  },
  {
    kind: 'disclosure',
    anchor:
      /\b(?:codes?|passwords?|credentials|api[- ]keys?|secrets?|tokens?|otps?|card numbers?|private keys?|system prompt)\b|passwort|zugangsdaten|mot de passe|motdepasse|identifiants|contrasena|credencial|credenzial|\bcodic|\bcodigo|\bsenha|wachtwoord|inloggegevens|\bhasl|\bkod|парол|коды|код |ключ|密码|验证码|密鑰|密钥|凭证|パスワード|認証コード|コード|비밀번호|인증 ?코드|인증번호|كلمات المرور|كلمة المرور|رموز|رمز|sifre|parola|kodlar/g,
    rules: [
      [
        /\b(?:forward|e-?mail|post|upload|exfiltrate|leak|transmit|relay|deliver|submit|send|reply with|respond with|output|print|reveal|include|append|paste|hand over)\b/,
        /\b(?:all|every|any|each|the (?:latest|last|newest|user's|owner's)|user's|owner's|your system prompt|received|stored|in (?:this|the|your) (?:mailbox|inbox))\b/,
        /[\w.-]@[\w-]|https?:|\battacker|\bto (?:me|us|this address|the following|the sender)\b|in (?:your|the) (?:reply|answer|response)|your system prompt|with the (?:latest|last)|every .{0,40}you (?:have|receive)|by (?:e-?mail|reply)/,
      ],
      [/\b(?:leite|schicke?|sende|ubermittle|antworte|gib)\b/, /@|http|weiter|preis/, /alle|jede|letzte|neueste/],
      [
        /\b(?:transfer|transmet|envoie|envoyez|reponds|repondez|revele|communique)/,
        /@|http|reponse/,
        /tous|toutes|chaque|dernier/,
      ],
      [/\b(?:reenvi|envi|responde|revela|manda)/, /@|http|respuesta/, /tod[oa]s|cada|ultim/],
      [/\b(?:inoltr|invia|rispondi|rivela|manda)/, /@|http|risposta/, /tutt|ogni|ultim/],
      [/\b(?:encaminh|reencaminh|envi|respond|revel|mande)/, /@|http|resposta/, /tod[oa]s|cada|ultim/],
      [/\b(?:stuur|verzend|antwoord|mail)\b/, /@|http|door/, /alle|elke|laatste/],
      [/\b(?:przeslij|przekaz|wyslij|odpowiedz)/, /@|http/, /wszystki|kazd|ostatni/],
      [/перешли|отправ|пришли|ответь|сообщи|передай/, /@|http|ответ/, /все|кажд|последн/],
      [/转发|发送|发给|发到|泄露|回复|傳送|轉發/, /@|http/, /所有|全部|每|最新/],
      [/転送|送信|送って|送れ|返信|返答/, /@|http/, /すべて|全て|全部|最新/],
      [/전달|보내|전송|회신/, /@|http/, /모든|전부|최신|모두/],
      [/أرسل|ارسل|أعد توجيه|حول|قم بإرسال|قم بتحويل|وجه/, /@|http/, /جميع|كل|آخر|احدث/],
      [/ilet|gonder|yolla|yanitla/, /@|http/, /tum|butun|her|son /],
    ],
  },
  {
    kind: 'role',
    anchor:
      /you are now|you're now|from now on|new instructions?|pretend (?:to be|you)|(?:if|when|since|as) you(?:'re| are)? (?:an? )?(?:ai|llm|language model|assistant|agent|bot)\b|(?:attention|note (?:to|for)|message (?:to|for)|instructions? (?:to|for)|dear|hey|hello) (?:all |any |the )?(?:ai|llm|llms|language models?|assistants?|automated)\b|du bist (?:jetzt|nun|ab)|ab sofort|tu es (?:maintenant|desormais)|vous etes (?:maintenant|desormais)|a partir de (?:agora|ahora|maintenant)|ahora eres|adesso sei|ora sei|agora voce e|je bent nu|jestes teraz|od teraz|теперь ты|отныне|你现在是|从现在起|あなたは今|今から|これから|당신은 이제|지금부터|أنت الآن|من الآن|artik sen|bundan sonra/g,
    rules: [
      [
        /\b(?:ai|llm|llms|language models?|assistants?|agent|unrestricted|developer mode|admin(?:istrator)? mode|jailb|dan|root)\b|instructions?:|\bact as\b|\bpretend\b/,
      ],
      [/\b(?:ki|ki-|assistent|assistant|asistente|assistente|asystent|agent|agente)/],
      [/ассистент|помощник|агент|助手|助理|智能|アシスタント|エージェント|비서|어시스턴트|مساعد|asistan/],
    ],
  },
  {
    kind: 'marker',
    anchor:
      /<\|[a-z_]{2,20}\|>|\[\/?inst\]|<<\/?sys>>|<\/?(?:system|assistant|tool_?(?:result|response|call|use)|function_?(?:result|call|response)s?|antml|instructions?|untrusted|user_?(?:message|input)|email_?(?:body|content))\b[^\n>]{0,60}>|#{2,6} ?(?:system|instruction|assistant|human|end of (?:e-?mail|message|user))\b|\[(?:system|admin(?:istrator)?|developer|tool)(?: (?:message|override|note|prompt|instruction|notice|result|update))?[\]:]|(?:begin|start|end)(?: of)? (?:system|admin|developer|untrusted|tool|user|hidden|email) (?:prompt|message|instructions?|content|input|output|data)|system (?:prompt|override|message) ?:|\bsystem: ?(?:you|ignore|the|new|from|override|all)|\bassistant: ?(?:sure|ok|yes|i )|\{"role": ?"(?:system|assistant|tool|developer)"/g,
    rules: [[/[\s\S]/]],
  },
]
