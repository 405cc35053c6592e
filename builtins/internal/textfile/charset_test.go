package textfile

import (
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

var charsetTexts = map[string]string{
	"ru": "Программа читает файл построчно и сообщает, сколько слов в нём найдено. Если файл не открывается, она выводит сообщение об ошибке и завершает работу.\n",
	"uk": "Програма читає файл рядок за рядком і повідомляє, скільки слів у ньому знайдено. Якщо файл не відкривається, вона виводить повідомлення.\n",
	"el": "Το πρόγραμμα διαβάζει το αρχείο γραμμή προς γραμμή και αναφέρει πόσες λέξεις βρέθηκαν. Αν το αρχείο δεν ανοίγει, εμφανίζει μήνυμα σφάλματος.\n",
	"he": "התוכנית קוראת את הקובץ שורה אחר שורה ומדווחת כמה מילים נמצאו בו. אם הקובץ אינו נפתח היא מציגה הודעת שגיאה.\n",
	"zh": "程序逐行读取文件，并报告其中找到了多少个单词。如果文件无法打开，它会显示错误信息，然后结束运行。我们在这里测试编码的识别。\n",
	"tw": "程式逐行讀取檔案，並報告其中找到了多少個單字。如果檔案無法開啟，它會顯示錯誤訊息，然後結束執行。我們在這裡測試編碼的識別。\n",
	"ja": "プログラムはファイルを一行ずつ読み込み、見つかった単語の数を報告します。ファイルが開けない場合は、エラーメッセージを表示して終了します。\n",
	"kj": "東京都千代田区霞が関二丁目一番二号、国土交通省国土政策局総務課企画専門官の山田太郎と申します。\n",
	"kt": "コンピュータープログラム、データベースサーバー、ネットワークインターフェース、テストケース\n",
	"ko": "프로그램은 파일을 한 줄씩 읽고 그 안에서 찾은 단어의 수를 보고합니다. 파일을 열 수 없으면 오류 메시지를 표시하고 종료합니다.\n",
	"co": "// 设置缓冲区的大小\nint size = 4096; /* 默认值 */\nchar *name = NULL; // 文件名，可以为空\nreturn read_all(fd, size); // 读取全部内容并返回长度\n",
}

// Charsets that resemble one that is known are not taken for it.
func TestCharsetsAlikeAreToldApart(t *testing.T) {
	for want, c := range map[string]struct {
		enc  encoding.Encoding
		text string
	}{
		"windows-1256 or ISO-8859-6": {charmap.ISO8859_6, "يقرأ البرنامج الملف سطرا سطرا ويبلغ عن عدد الكلمات التي تم العثور عليها.\n"},
		unknownCharset:               {charmap.MacintoshCyrillic, charsetTexts["ru"]},
	} {
		raw, err := c.enc.NewEncoder().Bytes([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if v := Sniff(raw, true); v.Encoding != Legacy || v.Name != want {
			t.Errorf("%s is taken for %s, want %s", c.enc, v.Name, want)
		}
	}
}

// A charset is named right or not at all, whatever the length of the text.
func TestCharsetIsNeverWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		enc   encoding.Encoding
		texts []string
	}{
		{"windows-1251", charmap.Windows1251, []string{"ru", "uk"}}, {"KOI8-R", charmap.KOI8R, []string{"ru"}}, {"IBM866", charmap.CodePage866, []string{"ru"}}, {"ISO-8859-5", charmap.ISO8859_5, []string{"ru", "uk"}},
		{"windows-1253 or ISO-8859-7", charmap.Windows1253, []string{"el"}}, {"windows-1253 or ISO-8859-7", charmap.ISO8859_7, []string{"el"}}, {"windows-1255 or ISO-8859-8", charmap.Windows1255, []string{"he"}},
		{"GBK", simplifiedchinese.GBK, []string{"zh", "co", "tw"}}, {"GBK", simplifiedchinese.GB18030, []string{"zh", "co"}}, {"Big5", traditionalchinese.Big5, []string{"tw"}},
		{"Shift_JIS", japanese.ShiftJIS, []string{"ja", "kj", "kt"}}, {"EUC-JP", japanese.EUCJP, []string{"ja", "kj", "kt"}}, {"EUC-KR", korean.EUCKR, []string{"ko"}},
	} {
		for _, lang := range c.texts {
			text := charsetTexts[lang]
			for cut := range len(text) + 1 {
				if cut < len(text) && !utf8.RuneStart(text[cut]) {
					continue
				}
				for _, piece := range []string{text[:cut], text[cut:]} {
					raw, err := c.enc.NewEncoder().Bytes([]byte(piece))
					if err != nil {
						t.Fatalf("%s in %s: %v", lang, c.name, err)
					}
					v := Sniff(raw, true)
					if v.Encoding != Legacy {
						continue // ASCII, or too short to be told from damage
					}
					whole := len(piece) == len(text)
					if v.Name != c.name && (v.Name != unknownCharset || whole && lang != "kj" && lang != "tw") {
						t.Errorf("%s in %s, %q: %s", lang, c.name, piece, v.Name)
						break
					}
				}
			}
		}
	}
}
