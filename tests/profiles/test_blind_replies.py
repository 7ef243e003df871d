"""A reply that says nothing but that its model can't see images, and replies that only contain such words."""

from __future__ import annotations

import pytest

from sightline.profiles.blind_replies import MAX_REPLY_LENGTH, admits_blindness
from tests.requirements import requirement

# The patterns were written with these replies at hand.
KNOWN = (
    "I don't have vision, so I can't tell you what is in the screenshot.",
    "I'm just a language model and cannot see images.",
    "I can't see what you've attached — I only handle text.",
    "I can't see images.",
    "The image could not be processed because this model only supports text.",
    "Sorry, this model only accepts text input.",
    "I cannot see the image you sent. Could you describe what it shows?",
    "I apologize, but I cannot process images.",
    "I can't open or look at pictures — I only work with text.",
    "I'm unable to view images.",
    "I am not able to see the attached screenshot. Please describe it to me.",
    "I am currently unable to process visual content.",
    "I don't have the ability to see images.",
    "I don't have vision capabilities, so I can't read the screenshot.",
    "I do not have image viewing capabilities in this environment. Please share the text of the error.",
    "I lack the capability to view images. Can you describe the problem in words?",
    "I'm a text-only model and can't see the image.",
    "The current model doesn't support images. Please switch to a vision model.",
    "The model I'm running on does not support vision, so I cannot see your screenshot.",
    "The selected model can't process images. You can switch to another model with /model.",
    "I can't read the image because the model I am using doesn't support image input.",
    "I can only process text, not images.",
    "I can only read text input. Could you tell me what the image shows?",
    "I only accept text, so I can't look at the screenshot.",
    "I don't see any image attached to your message.",
    "It looks like no image was attached. Could you share it again?",
    "I don't have access to the image you mentioned.",
    "I'm not able to access the attached image, so I can't describe it.",
    "抱歉，我看不到你发送的图片，请用文字描述一下。",
    "Je ne peux pas voir les images. Pouvez-vous décrire ce qu'elle montre ?",
    "Desculpe, não consigo visualizar imagens.",
    "I'm not able to see any attachments.",
    "I can't see any images.",
    "画像を見ることができません。",
    "I can't perceive images.",
    "I can't see the picture, I'm only able to process text.",
    "I'm sorry, I can't see images. Could you describe what's in it?",
    "Je ne peux pas voir les images.",
    "It seems the image didn't come through. Could you re-upload it?",
    "I cannot process image input.",
    "I'm currently unable to view images.",
    "No image was attached to your message.",
    "Es tut mir leid, ich kann keine Bilder sehen.",
    "My vision capabilities are disabled.",
    "Unfortunately, I'm unable to view or analyze images at this time.",
    "I am a text-based model and cannot view images.",
    "I'm afraid I can't look at pictures.",
    "I currently can't view images.",
    "I don't have eyes, I can't see it.",
    "As an AI language model, I don't have the ability to view images.",
    "I do not have the ability to process images directly.",
    "It looks like you've shared an image, but I can't view it.",
    "My current model doesn't have vision capabilities.",
    "I can't open image attachments here.",
    "The image isn't visible to me.",
    "I cannot see the image. Please describe the contents so that I can help.",
    "Image not visible to me.",
    "Sorry, I do not have image recognition capabilities.",
    "I am not capable of viewing images.",
    "I lack vision capabilities, so I cannot interpret this screenshot.",
    "I only have access to the text of your message, not the image.",
    "Image viewing is not available to me.",
    (
        "It seems like you've referenced an image, but I can't see or access images directly."
        " Could you describe the content of the image or provide more context?"
    ),
)

# These were set aside before the patterns were written.
SET_ASIDE = (
    "Sorry, I can't view images. Please paste the error text instead.",
    (
        "Unfortunately, I can't see screenshots, so I can't tell what the dialog says."
        " If you type the message here, I'll help."
    ),
    "I can’t view or interpret images directly. Could you paste the relevant text?",
    (
        "I'm sorry, but I'm unable to directly view or analyze images."
        " If you can describe the layout, I'd be happy to help you fix it."
    ),
    "I have no way to look at the picture you attached.",
    "As a text-based AI, I can't view images. Please describe what you see.",
    "As a language model without vision support, I cannot analyze the screenshot you pasted.",
    "I'm a text-based model, so I don't have the ability to see images or screenshots.",
    "This model does not support image input.",
    "Image input is not supported by this model. Please describe the image or switch to a model with vision.",
    "I do not see any screenshot in our conversation. Could you please upload it again?",
    "There is no image attached to your message. Please try uploading it again.",
    "It seems the image didn't come through. Could you try sending it again?",
    "No image was provided. Please attach the screenshot.",
    "I don't actually have access to the image content — only to the text of your message.",
    "I can't access images. Please describe what is on the screen.",
    "我无法查看图片。",
    "当前模型不支持图片输入，请切换到支持视觉的模型。",
    "Ich kann leider keine Bilder sehen. Bitte beschreibe mir, was darauf zu sehen ist.",
    "Lo siento, no puedo ver imágenes. ¿Podrías describir lo que muestra?",
    "К сожалению, я не могу просматривать изображения. Опишите, пожалуйста, что на нём.",
    "申し訳ありませんが、画像を見ることができません。",
    "I can't make out the image because I am a text-only model.",
    "As a text-based AI model, I can't process images.",
    "I cannot view images directly. Could you describe it?",
    "I can't directly view images or screenshots. If you describe what you see, I'll help.",
    "I can't actually see the image you shared.",
    "The current model does not support images.",
    "I'm unable to see the screenshot you shared.",
    "I see that you attached a screenshot, but I cannot view it. Could you paste the text?",
    "Image input is not supported by this model.",
    "Vision is not supported by the selected model.",
    "I have no way to see the screenshot.",
    "I don't see any image in your message. Could you try attaching it again?",
    "Unfortunately I don't have the capability to view pictures.",
    "No puedo ver imágenes.",
    "抱歉，我无法查看图片。",
    "I can see that you've attached an image, but I don't have the ability to view it.",
    "I'm a text-only model, so I can't look at the screenshot.",
    "I can't see or access images directly. Could you describe the content?",
    "I'm not able to view images in this conversation.",
    "There is no image attached to your message.",
    "I'm sorry, but I can't view the image you attached.",
    "I don't have vision capabilities.",
)

# Transcriptions, trouble with details, discussions of vision support, code, and ordinary work.
OTHER = (
    "I don't have vision in the list of dependencies.",
    "I can't see what you've changed.",
    "Images aren't supported in this chat.",  # as a page may say
    "It's just a language model and images are stored elsewhere.",
    "Vision is not supported.",
    'The screenshot says: "Vision is not supported".',
    '"This model does not support image input."',
    "`This model does not support image input.`",
    "> I'm unable to view images.",
    'The dialog reads "I can\'t see images" with an OK button below it.',
    "The text in the image is:\n\nThis model does not support image input.",
    "```\nError: this model does not support image input\n```",
    "It shows the error: this model does not support image input.",
    "The toast at the top says that images are not supported by this model.",
    "Transcription:\nI cannot see images.\nOK  Cancel",
    "Error 400: image input is not supported by this server",
    "The chat bubble on the left says I'm sorry, but I can't view images, and the reply is \"really?\".",
    "VISION NOT SUPPORTED — Retry",
    "I can't see the image clearly enough to read the small print, but the header says Invoice.",
    "I can see the image, but the text at the bottom is cut off.",
    "I can't make out the last digit of the number in the screenshot.",
    "I can't see a login button in the image.",
    "I don't see any error in the screenshot.",
    "I don't see any image in the sidebar; there is only a list of links.",
    "I can't view the whole page in this screenshot; please scroll down and take another one.",
    "The image doesn't load in the browser because its path is wrong.",
    "The image is blurry, so I can't read the serial number.",
    "I'm unable to read the handwriting in the image.",
    "There is no image in the hero section any more: the img tag was removed.",
    "No image was provided to the <Card> component, so it shows the placeholder.",
    "I can't see the bottom half of the picture because the window covers it.",
    "I don't have access to the repository shown in the screenshot.",
    'I can only read part of the text: "Total 42".',
    "I cannot see the images folder in your project. Did you mean assets/?",
    "DeepSeek V4 doesn't support image input; use Qwen3-VL if you need it.",
    "Screen readers can't see images without alt text, so I added alt attributes.",
    "The README says the model does not support vision. I'd remove that sentence.",
    'Your users will get "model does not support images" when they upload a picture. Let me add a check.',
    "The function returns false when the model does not support images.",
    (
        "This model does not support image input, according to the log in your screenshot;"
        " the line above names it as deepseek-chat."
    ),
    "Some models can't process images, which is why the test is skipped.",
    "gpt-oss is a text-only model and can't see images, so the proxy describes them.",
    'if (!model.vision) throw new Error("This model does not support image input.");',
    'I added `raise ValueError("I can\'t see images")` to the handler.',
    "I fixed the upload: images are not supported in tool results, so they now go into a user message.",
    "Done. The red box is at the top left and the blue one at the bottom right.",
    "The chart shows revenue by quarter.",
    "A red door.",
    "all right",
    "I can't run the tests because the network is not available.",
    "I'm unable to connect to the database. Please check the password.",
    "I don't have permission to write to that folder.",
    "I can't see images/logo.png in the repository.",
    "The tests fail because the fixture doesn't support images of more than 8 MB.",
    "Das Bild zeigt eine Fehlermeldung: Bilder werden nicht unterstützt.",
    "图片中的文字是：当前模型不支持图片输入。",
    "I can't see the image. Just kidding: it is a cat on a red sofa with the word HELLO above it.",
    "The image could not be processed because Pillow is missing. Please run pip install pillow.",
    "No image is visible on the page. Please set display to block.",
    "The image wasn't uploaded.",
    "No screenshot was provided by the test. Please set `screenshot: on` in playwright.config.ts.",
    "The picture was not uploaded to S3. Please check the bucket policy.",
    "I can't display the image in the terminal. Please open out.png.",
    "I can't see the image loading in the browser because the CSS hides it.",
    "The image is not visible because of z-index. Please change it to 10.",
    "I cannot open the picture. Please install libjpeg.",
    'The error message is "This model does not support image input".',
    "No image was uploaded.",
    "vision is not supported",
    "The image could not be processed because the file is damaged. Please save it again.",
    "I can't open the image file. Please run chmod 644 on it.",
    "There are no images in this conversation export. Please re-export it with media.",
    "I can't access the image because the server returned 403. Please log in first.",
    "I cannot process the image. Can you install pillow, then run convert on all files?",
    "The text in the screenshot reads: I can't see images.",
    "> I can't view images directly.",
    "I can't view the screenshot folder. Can you run ls -la on it?",
    "The dialog says that image input is not supported by this model.",
    "Can you see it? The image didn't come through. Try adding width and height to the figure element in the page.",
    "No image is provided. Please set the src attribute to a file in /public.",
    "Your image was not uploaded to the server.",
    "I can't load images from that host. Please add it to next.config.js.",
    "The model doesn't support images, according to line 12 of models.ts.",
    "There's no image in the folder. Please run the build first.",
    "I can't load the image. You can fix it by correcting the path in index.html line 4.",
    '"I can\'t view images."',
    "I can't read the image file. Please check its permissions.",
    "There is no image in the message. Please add an img tag.",
    "The image was not found. Please check the path.",
    "I cannot process images with ImageMagick 6. Please upgrade to version 7.",
    'The screenshot says: "vision is not supported".',
    "I can't see the image tag in index.html. Please add it.",
    "Error: this model does not support image input",
)


@pytest.mark.parametrize("reply", [*KNOWN, *SET_ASIDE])
@requirement("acp.says_blind")
def test_a_reply_that_says_only_that_its_model_cannot_see_is_recognized(reply: str) -> None:
    assert admits_blindness(reply)
    assert admits_blindness(f"**{reply}**\n")


@pytest.mark.parametrize("reply", OTHER)
@requirement("acp.says_blind")
def test_a_reply_that_says_anything_else_is_not_an_admission(reply: str) -> None:
    assert not admits_blindness(reply)


@requirement("acp.says_blind")
def test_only_a_short_reply_can_be_an_admission() -> None:
    reply = "I can't see images. "
    assert admits_blindness(reply * 3)
    assert not admits_blindness(reply * (MAX_REPLY_LENGTH // len(reply) + 1))
    assert not admits_blindness("")


@requirement("acp.says_blind")
def test_an_admission_beside_anything_else_is_not_one() -> None:
    for before, after in (("The header is red. ", ""), ("", " The header is red."), ("It says: ", "")):
        assert not admits_blindness(f"{before}I can't see images.{after}")
