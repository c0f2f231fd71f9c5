/**
 * The words that announce a one-time code, in the languages services write in. What only looks like one (promo code, ZIP
 * code, QR code …) is not matched.
 */
export const announcers = new RegExp(
  [
    // Latin scripts. The end of a word is looked for, not its start: Bestätigungscode, engangskode, vahvistuskoodi.
    String.raw`(?=cod)(?<!\b(?:promo(?:tion(?:al)?)?|offer|price|deal|savings|campaign|discount|coupon|voucher|gift|zip|postal|post|area|country|qr|error|status|tracking|order|booking|reservation|referral|source|dress|sort|swift|product|item|tax|recovery|backup|building|door|of|voucher|rabatt|gutschein|fehler|buchungs|a|any|no|exit|response|http|color|colour|reason|plus)[\s-]?)(?<!bar|zip|post|en|de|uni|qr|rabatt|gutschein|aktions|fehler|buchungs|promo|länder|bank)co(?:de|digo|dice)(?:s|n)?(?! (?:of|coverage|freeze|quality|style|complete|point|page|owner|postal|promo(?!\p{L})|promotionnel|de descuento|civil|erreur|fiscale|sconto|de réduction|barre|review|base|snippet|changes))(?![\p{L}-])`,
    String.raw`(?=c[óo]d)(?<!\p{L})c[óo]digo(?! (?:postal|promocional|de (?:descuento|desconto|barras|seguimiento|rastreio|área)))(?:s)?(?!\p{L})`,
    String.raw`(?=k[oó]|cod)(?<!barko|\bpost|\bposta |promo |rabat)(?:kod|kode|koden|koodi|kodu|koda|kodunuz|kodunuzu|kodun|kód|kódja|kódot|codul)(?!\p{L})`,
    String.raw`(?=[opmt2cvsa])(?<!\p{L})(?:otp|pin|m?tan|2fa|passcode|pass code|passphrase|clave(?: dinámica| temporal)?|(?:verification|security|authentication) (?:number|token)|token|mã(?: xác (?:nhận|minh|thực))?)(?!\p{L})(?! (?:number|in|the|it)\b)`,
    String.raw`one[- ]time (?:password|pass|pin|login)|einmal(?:passwort|kennwort)|mot de passe (?:à usage unique|temporaire)|contraseña (?:de un solo uso|temporal)|senha (?:única|temporária|de uso único)|tek kullanımlık (?:şifre|parola)|hasło jednorazowe|engångs(?:kod|lösenord)|engangs(?:kode|kodeord|passord)`,
    String.raw`(?=[копκק])(?<!\p{L})(?:код(?:а|ом)?|пароль для входа|одноразовый пароль|κωδικός|κωδικό|קוד(?: אימות)?)(?! (?:товара|города|ошибки))(?!\p{L})`,
    String.raw`رمز|كود|الرمز|کد|कोड|ओटीपी|รหัส`,
    String.raw`验证码|驗證碼|校验码|校驗碼|动态码|动态密码|動態密碼|确认码|確認碼|安全码|安全碼|认证码|認證碼|登录码|登入碼|一次性密码|一次性密碼|口令`,
    String.raw`認証コード|確認コード|認証番号|確認番号|セキュリティコード|ワンタイムパスワード|ログインコード|検証コード|暗証番号|(?<!バー|QR|クーポン|郵便)コード`,
    String.raw`인증\s?번호|인증\s?코드|확인\s?코드|보안\s?코드|로그인\s?코드|일회용\s?(?:비밀번호|코드)|(?<!바|QR\s?)코드`,
  ].join('|'),
  'giu',
)

/** What stands straight before a number that is something else: an order, a phone, a price, an account's last digits. */
export const notBefore =
  /(?:(?:(?<!\p{L})(?:order|invoice|receipt|ticket|case|ref(?:erence)?|tracking|shipment|parcel|flight|booking|confirmation|customer|account|acct|member|policy|contract|article|item|sku|serial|suite|room|floor|apt|box|zip|plz|phone|tel|telephone|telefon|tél|fax|mobile|call|hotline|dial|sms to|text|ending|ends|endend|terminad[ao]|finissant|card|karte|konto|iban|bic|kunden|bestell|rechnungs?|auftrags?|vorgangs?|sendungs?|pedido|factura|fatura|commande|facture|ordine|fattura|sipariş|заказ[а-я]*|сч[её]т[а-я]*|телефон|тел|号码|单号|订单|訂單|注文|電話|전화|주문|رقم الطلب|هاتف|usd|eur|gbp|try|rub|inr|cny|jpy|rs|kr)(?:nummer|nr)?)[\s.:#-]{0,3}(?:(?:no|nr|num|number|nummer|numéro|número|numero|n°|nº|№|id|in|with|on|auf|mit|en|par|with the digits|code|号|番号|번호)[\s.:#°-]{0,3}){0,2}|[#№©]\s?|copyright\s?|\(c\)\s?|[$€£¥₹₽₩]\s?|\+\s?\d{0,4}\s?|\(\d{1,5}\)\s?)$/iu

/** Words between an announcement and a number that make the number something else. */
export const besides =
  /(?<!\p{L})(?:expires?|expiring|valid (?:for|until)|within|sent (?:to|at|on)|ending|ends in|order|invoice|phone|call|number ending|account|gültig (?:bis|für)|läuft|innerhalb|válido|expira|caduca|valable|expire|scade|действител|истекает|有效|on (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))(?!\p{L})/iu

/** Words after an announcement without "is" or a colon that turn to something else: "pushed code to branch 48213". */
export const elsewhere =
  /(?<!\p{L})(?:to|in|on|at|of|with|by|from|line|branch|case|version|has|have|been|was|were|page|section|for order)(?!\p{L})/iu

/** What follows a number that is a price, a time, a count or a discount. */
export const notAfter =
  /^(?:\.\d| ?(?:%|€|\$|£|usd|eur|gbp|円|元|₽|руб|원|tl\b|kr\b|uhr\b|км|km\b|:\d\d)|,\d\d\b| (?:times|users|people|characters|customers|points|words|lines|steps|orders|items|downloads|views|seconds|minutes|hours|days|weeks|months|years|mal|fois|veces|volte|раз|次|回|main st|market st|at checkout|for \d{1,3} ?%|to (?:get|save|receive|claim|redeem)|and (?:get|save))(?!\p{L}))/iu

/** What joins an announcement to its code: "… code for your transfer is", "… code: ". */
export const connector =
  /(?:[:：=(（[【「—-]|(?<!\p{L})(?:is|are|ist|sind|lautet|es|est|è|é|e['’]|to|jest|är|er|on|olan|είναι|это|היא|הוא|هو|هي|it)|[是为為は이은])[\s"'“«([（「【]*$/iu

/** A subject that is about signing in: "482913 – Acme login". */
export const signIn =
  /log[ -]?in|sign[ -]?in|verif|authenticat|anmeld|connexion|acceso|accesso|вход|登录|登錄|登入|ログイン|로그인|giriş/iu

/** A line that is the label of another number: "Order number:". */
export const besidesAlone =
  /^(?:[\p{L} ]{0,20})(?:order|invoice|bestell|rechnung|pedido|factura|commande|facture)[\p{L} ]{0,20}[:：]?$/iu

/** The reader is asked to write what follows: "Enter", "Use the". */
export const isAsked =
  /(?:^|\s)(?:use|enter|type|input|verwenden sie|nutze|gib|geben sie|introduce|ingresa|usa|utilisez|entrez|saisissez|inserisci|введите|используйте|请输入|輸入|输入|入力)(?: (?:the|this|den|el|le|il))?(?:\s*[:：])?\s*$/iu

/** … and what for: "to sign in". */
export const forWhat =
  /^\s?(?:(?:in|on|into|at|auf|en|dans)\s.{0,40}?\s)?(?:to|um|para|pour|per|чтобы|для|进行|完成)\s.{0,30}(?:verif|confirm|continue|proceed|finish|activat|sign|log ?in|log ?on|authenticat|anmeld|bestätig|ident|iniciar|acceder|connect|acced|войти|вход|подтверд|验证|登录)/iu
